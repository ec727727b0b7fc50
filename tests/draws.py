"""Series of random values whose median is 0, and how often what is said of them may be wrong."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence

from harness.stats import Estimate

Draw = Callable[[random.Random, int], list[float]]


def remembering(rho: float) -> Draw:
    """A Gaussian series whose values have this correlation with the one before."""

    def draw(rng: random.Random, n: int) -> list[float]:
        xs = [rng.gauss(0, 1)]
        while len(xs) < n:
            xs.append(rho * xs[-1] + math.sqrt(1 - rho * rho) * rng.gauss(0, 1))
        return xs

    return draw


def student_3(rng: random.Random, n: int) -> list[float]:
    return [rng.gauss(0, 1) / math.sqrt(rng.gammavariate(1.5, 2) / 3) for _ in range(n)]


def skewed(rng: random.Random, n: int) -> list[float]:
    return [math.expm1(0.5 * rng.gauss(0, 1)) for _ in range(n)]


def lumpy(rng: random.Random, n: int) -> list[float]:
    """Two lumps of equal weight that overlap a little, with a median of 0."""
    return [rng.gauss(rng.choice((-1.0, 1.0)), 0.6) for _ in range(n)]


DRAWS: dict[str, Draw] = {
    "normal": remembering(0),
    "student": student_3,
    "skewed": skewed,
    "lumpy": lumpy,
    "0.3": remembering(0.3),
    "0.5": remembering(0.5),
}


def at_most(share: float, runs: int) -> float:
    """What so many runs exceed in 1 % of cases if the true share is this."""
    return runs * share + 2.33 * math.sqrt(runs * share * (1 - share))


def stopped(xs: Sequence[float], sizes: Sequence[int], width: float, estimate: Callable[..., Estimate]) -> Estimate:
    """The estimate at the first of these looks at which its interval is this narrow, or at the last."""
    estimates = (estimate(xs[:size]) for size in sizes[:-1])
    return next((e for e in estimates if e.high - e.low <= width), None) or estimate(xs[: sizes[-1]])
