"""What a round costs besides its calls, measured before the submission is in the sandbox. Trusted.

Null rounds are answered by the runner, so once a submission is loaded it can slow them, and with them the overhead that
is taken off every sealed time. What the same sandbox needed while it still held nothing but our own code bounds that.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from harness import stats, wire
from harness.judge.agreement import median_error_ns
from harness.judge.batch import Batch
from harness.judge.layout import Layout
from harness.judge.session import Session
from harness.judge.timing import Plan
from harness.problem import Problem, ResolvedCase
from harness.verdict import DeviceKind

_ROUNDS = 8
_SECONDS = 60.0
_IDLE_S = 0.01
_COLD_BYTES = 32 << 20


@dataclass(frozen=True)
class NullCost:
    """Null rounds over one pair of arenas, in ns: the fastest, and the most that their median may be taken for."""

    nbytes: int
    low_ns: int
    high_ns: int

    @classmethod
    def of(cls, nbytes: int, walls_ns: Sequence[int]) -> NullCost:
        error_ns = median_error_ns(stats.spread(walls_ns), len(walls_ns))
        return cls(nbytes, min(walls_ns), round(stats.median(walls_ns) + error_ns))


@dataclass(frozen=True)
class Overhead:
    """Bounds on what may be taken off a batch, by the size of its arenas: linear from small to large ones."""

    small: NullCost
    large: NullCost
    noise_ns: int
    """From the fastest to the slowest null round over the large arenas: no noise beyond this is believed later."""

    def low_ns(self, nbytes: int) -> int:
        return self._at(nbytes, self.small.low_ns, self.large.low_ns)

    def high_ns(self, nbytes: int) -> int:
        return self._at(nbytes, self.small.high_ns, self.large.high_ns)

    def _at(self, nbytes: int, small_ns: int, large_ns: int) -> int:
        grown = self.large.nbytes - self.small.nbytes
        share = min(1.0, (nbytes - self.small.nbytes) / grown) if grown > 0 else 1.0
        return round(small_ns + max(0.0, share) * (large_ns - small_ns))


def arena_bytes(layout: Layout, sets: int) -> int:
    """The size of both arenas together, which is what mapping them can depend on."""
    return sets * (layout.input_stride + layout.output_stride)


def null_round(session: Session, batch: Batch, seconds: float, doing: str) -> int:
    """One round without a call, by the judge's clock, in ns."""
    session.ask(wire.Assemble(order=()), wire.Done, seconds=seconds, doing=doing)
    sample = batch.draw_sample(range(batch.sets))
    start = time.perf_counter_ns()
    session.ask(wire.Round(), wire.Timed, descriptors=batch.descriptors, seconds=seconds, doing=doing)
    batch.take(sample)
    return time.perf_counter_ns() - start


def measure_overhead(
    session: Session, problem: Problem, case: ResolvedCase, device: DeviceKind, plan: Plan
) -> Overhead:
    """Run null rounds in a sandbox that has no submission yet.

    Raises:
        SandboxError: the runner failed; it is our own code that failed.
    """
    layout = Layout(case)
    largest = max(1, min(plan.memory_bytes // layout.bytes_per_set, wire.MAX_SETS))
    large, walls_ns = _null_cost(session, problem, case, device, largest)
    # On a GPU mapping costs the same whatever the size; on a CPU it grows with the pages.
    small = _null_cost(session, problem, case, device, 1)[0] if device == "cpu" else large
    session.ask(wire.Release(), wire.Done, seconds=_SECONDS, doing="measuring the overhead")
    return Overhead(small, large, max(walls_ns) - min(walls_ns))


def _null_cost(
    session: Session, problem: Problem, case: ResolvedCase, device: DeviceKind, sets: int
) -> tuple[NullCost, list[int]]:
    layout = Layout(case)
    doing = "measuring the overhead"
    bind = layout.bind(case, problem.parameters, sets, inputs_writable=False)
    batch = Batch(layout, device, sets, filled=False)
    try:
        session.ask(bind, wire.Done, descriptors=batch.descriptors, seconds=_SECONDS, doing=doing)
        null_round(session, batch, _SECONDS, doing)  # meets code that never ran
        walls_ns = []
        for _ in range(_ROUNDS):
            _grow_cold()
            walls_ns.append(null_round(session, batch, _SECONDS, doing))
    finally:
        batch.close_arenas()
    return NullCost.of(arena_bytes(layout, sets), walls_ns), walls_ns


def _grow_cold() -> None:
    """Put both processes where a real round finds them: idle for a while, and out of the caches.

    Null rounds in a row, or straight after a real one, are up to a millisecond faster than a round that follows the
    comparison of the last. An honest kernel was rejected for that difference.
    """
    time.sleep(_IDLE_S)
    torch.ones(_COLD_BYTES // 8, dtype=torch.int64).sum()
