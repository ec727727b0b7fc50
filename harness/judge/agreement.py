"""Holds what a runner claims against the judge's own clock, and says which number counts. Pure, trusted.

A claim is finer than the clock, so it counts where the two agree; in no round does it count for less than the clock
allows, up to a tolerance that follows from the noise of the null rounds (docs/decisions/0005).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from harness import stats
from harness.verdict import SealedRound

WIDEST = 0.20  # of the sealed time: a tolerance beyond this is not granted
_GAP_NS = 60_000  # a launch and a wake-up of either process, which null rounds do not always repeat exactly
_RELATIVE = 0.02
# The standard error of a median of n values is 1.25 σ/√n, and the spread from 10 % to 90 % of a normal law is 2.56 σ.
_SPREAD_TO_SE = 1.25 / 2.56
_SURE = 3.0  # standard errors
# A claim below the clock by the tolerance and this share more is no noise. In between it is only not believed.
_ACCUSATION = 0.10
# How much slower null rounds may become by themselves: on an H200 they took 1.05 ms before a submission was loaded, and
# 1.1 to 1.35 ms later, when a launch had a thousand nodes.
_DRIFT = 1.25


def median_error_ns(noise_ns: float, samples: int) -> float:
    """How far the median of noisy samples may be off, given their spread from 10 % to 90 %."""
    return _SURE * _SPREAD_TO_SE * noise_ns / math.sqrt(samples)


def _uncertain_ns(noise_ns: float, rounds: int, nulls: int) -> float:
    """How far (wall - overhead) of a batch may be off, both being medians."""
    return _GAP_NS + math.hypot(median_error_ns(noise_ns, rounds), median_error_ns(noise_ns, nulls))


def shortest_batch_ns(noise_ns: int, rounds: int) -> int:
    """How long a batch must last for its tolerance to stay within `WIDEST`, given the noise of the null rounds."""
    return round(_uncertain_ns(noise_ns, rounds, rounds) / (WIDEST - _RELATIVE))


@dataclass(frozen=True)
class Bounds:
    """What null rounds showed before the submission was there, in ns: nothing it does can widen them."""

    low_ns: int
    """The least that the overhead can be."""
    usual_ns: int
    noise_ns: int

    @property
    def high_ns(self) -> int:
        """The most that the overhead may be taken for."""
        return round(_DRIFT * self.usual_ns)


@dataclass(frozen=True)
class Agreement:
    """A case's rounds by both clocks, in ns; all but overheads and noise are per call."""

    overhead_ns: int
    bounds: Bounds
    noise_ns: int
    sealed_ns: int
    claimed_ns: int
    tolerance_ns: int
    steady: bool
    """Whether the null rounds are as they were before the submission was there."""
    impossible: bool
    """Whether every round claims less than the clock allows, the most fortunate one too."""

    @classmethod
    def of(cls, rounds: Sequence[SealedRound], null_ns: Sequence[int], bounds: Bounds) -> Agreement:
        """Compare the clocks of a case's rounds."""
        measured_ns = round(stats.median(null_ns))
        overhead_ns = min(measured_ns, bounds.high_ns)
        noise_ns = min(round(stats.spread(null_ns)), bounds.noise_ns)
        sealed_ns = round(stats.median([max(0, r.wall_ns - overhead_ns) / r.calls for r in rounds]))
        claimed_ns = round(stats.median([r.claimed_ns / r.calls for r in rounds]))
        uncertain_ns = _uncertain_ns(noise_ns, len(rounds), len(null_ns))
        tolerance_ns = round(uncertain_ns / rounds[0].calls + _RELATIVE * sealed_ns)
        allowed = [(1 - _ACCUSATION) * (r.wall_ns - overhead_ns) / r.calls - tolerance_ns for r in rounds]
        return cls(
            overhead_ns=overhead_ns,
            bounds=bounds,
            noise_ns=noise_ns,
            sealed_ns=sealed_ns,
            claimed_ns=claimed_ns,
            tolerance_ns=tolerance_ns,
            steady=measured_ns <= bounds.high_ns,
            impossible=all(r.claimed_ns / r.calls < least for r, least in zip(rounds, allowed, strict=True)),
        )

    @property
    def wide(self) -> bool:
        """Whether the clock is too coarse for this batch to let the claim have the benefit of the doubt."""
        return self.tolerance_ns > WIDEST * self.sealed_ns

    @property
    def accuses(self) -> bool:
        """Whether the claims are too low for anything but a lie: neither noise nor a busier machine explains them."""
        return self.impossible and self.steady and not self.wide

    def believed(self, rounds: Sequence[SealedRound]) -> list[float]:
        """Each round's time per call: the claim, but never below what the judge's clock allows for that round.

        Where the clock is too coarse it allows nothing below the wall less the least overhead, and where the null
        rounds have become slower nothing below the wall less the usual one: what cannot be checked must not pay.
        """
        overhead_ns, granted_ns = self.overhead_ns, self.tolerance_ns
        if self.wide or not self.steady:
            granted_ns = 0
            overhead_ns = min(overhead_ns, self.bounds.low_ns if self.wide else self.bounds.usual_ns)
        return [max(r.claimed_ns / r.calls, (r.wall_ns - overhead_ns) / r.calls - granted_ns) for r in rounds]
