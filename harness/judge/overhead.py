"""What a round costs besides its calls, measured before the submission is in the sandbox. Trusted.

Null rounds are answered by the runner, so once a submission is loaded it can slow them, and with them the overhead that
is taken off every sealed time. What the same sandbox needed while it still held nothing but our own code bounds that.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from harness import stats, wire
from harness.judge.agreement import Bounds, median_error_ns
from harness.judge.batch import Batch
from harness.judge.layout import Layout
from harness.judge.session import Session
from harness.judge.timing import Plan
from harness.problem import Problem, ResolvedCase
from harness.verdict import DeviceKind

_ROUNDS = 8
_SECONDS = 60.0


@dataclass(frozen=True)
class NullCost:
    """Null rounds over one pair of arenas, in ns: the fastest, and the upper end of their median's interval."""

    nbytes: int
    low_ns: int
    usual_ns: int

    @classmethod
    def of(cls, nbytes: int, walls_ns: Sequence[int]) -> NullCost:
        error_ns = median_error_ns(stats.spread(walls_ns), len(walls_ns))
        return cls(nbytes, min(walls_ns), round(stats.median(walls_ns) + error_ns))


@dataclass(frozen=True)
class Overhead:
    """Bounds on what may be taken off a batch, by the size of its arenas: linear from small to large ones."""

    small: NullCost
    large: NullCost
    spread_ns: int
    """From 10 % to 90 % of the null rounds over the large arenas: the noise to expect."""
    range_ns: int
    """From the fastest to the slowest of them: no noise beyond this is believed later."""

    def bounds(self, nbytes: int) -> Bounds:
        """For batches whose arenas have this size."""
        grown = self.large.nbytes - self.small.nbytes
        share = min(1.0, max(0.0, (nbytes - self.small.nbytes) / grown)) if grown > 0 else 1.0
        low_ns = self.small.low_ns + share * (self.large.low_ns - self.small.low_ns)
        usual_ns = self.small.usual_ns + share * (self.large.usual_ns - self.small.usual_ns)
        return Bounds(round(low_ns), round(usual_ns), self.range_ns)


def arena_bytes(layout: Layout, sets: int) -> int:
    """The size of both arenas together, which is what mapping them can depend on."""
    return sets * (layout.input_stride + layout.output_stride)


def null_round(session: Session, layout: Layout, device: DeviceKind, sets: int, seconds: float, doing: str) -> int:
    """One round without a call, by the judge's clock, in ns.

    Over memory of its own, as new to the runner as that of a real round: mapping pages for the second time is up to two
    milliseconds faster, and honest short kernels on a CPU were rejected for the difference.
    """
    batch = Batch(layout, device, sets, filled=False)
    try:
        sample = batch.draw_sample(range(sets))
        session.ask(wire.Assemble(order=()), wire.Done, seconds=seconds, doing=doing)
        start = time.perf_counter_ns()
        session.ask(wire.Round(), wire.Timed, descriptors=batch.descriptors, seconds=seconds, doing=doing)
        batch.take(sample)
        return time.perf_counter_ns() - start
    finally:
        batch.close_arenas()


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
    return Overhead(small, large, round(stats.spread(walls_ns)), max(walls_ns) - min(walls_ns))


def _null_cost(
    session: Session, problem: Problem, case: ResolvedCase, device: DeviceKind, sets: int
) -> tuple[NullCost, list[int]]:
    layout = Layout(case)
    doing = "measuring the overhead"
    bind = layout.bind(case, problem.parameters, sets, inputs_writable=False)
    practice = Batch(layout, device, sets, filled=False)
    try:
        session.ask(bind, wire.Done, descriptors=practice.descriptors, seconds=_SECONDS, doing=doing)
    finally:
        practice.close_arenas()
    walls_ns = [null_round(session, layout, device, sets, _SECONDS, doing) for _ in range(_ROUNDS + 1)]
    del walls_ns[0]  # it met code that never ran
    return NullCost.of(arena_bytes(layout, sets), walls_ns), walls_ns
