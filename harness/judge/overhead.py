"""What a round costs besides its calls, measured before the submission is in the sandbox. Trusted.

Null rounds are answered by the runner, so once a submission is loaded it can slow them, and with them the overhead that
is taken off every sealed time. What the same sandbox needed while it still held nothing but our own code bounds that.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from harness import wire
from harness.judge.batch import Batch
from harness.judge.layout import Layout
from harness.judge.session import Session
from harness.judge.timing import Plan
from harness.problem import Problem, ResolvedCase
from harness.verdict import DeviceKind

_ROUNDS = 16
_SECONDS = 60.0


@dataclass(frozen=True)
class Ceiling:
    """The slowest null round seen with a small and with a large pair of arenas; between them it grows linearly."""

    small_bytes: int
    small_ns: int
    large_bytes: int
    large_ns: int
    range_ns: int
    """From the fastest to the slowest null round over the large arenas: no noise beyond this is believed later."""

    def at(self, nbytes: int) -> int:
        """The most that a null round over `nbytes` of arenas may be taken to cost, in ns."""
        if self.large_bytes <= self.small_bytes:
            return max(self.small_ns, self.large_ns)
        slope = max(0.0, (self.large_ns - self.small_ns) / (self.large_bytes - self.small_bytes))
        return round(self.small_ns + slope * max(0, nbytes - self.small_bytes))


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


def measure_ceiling(session: Session, problem: Problem, case: ResolvedCase, device: DeviceKind, plan: Plan) -> Ceiling:
    """Run null rounds in a sandbox that has no submission yet.

    Raises:
        SandboxError: the runner failed; it is our own code that failed.
    """
    layout = Layout(case)
    most = plan.memory_bytes // layout.bytes_per_set
    found: list[tuple[int, int]] = []
    for sets in (1, max(1, min(most, wire.MAX_SETS))):
        bind = layout.bind(case, problem.parameters, sets, inputs_writable=False)
        batch = Batch(layout, device, sets, filled=False)
        doing = "measuring the overhead"
        try:
            session.ask(bind, wire.Done, descriptors=batch.descriptors, seconds=_SECONDS, doing=doing)
            walls = [null_round(session, batch, _SECONDS, doing) for _ in range(_ROUNDS)]
        finally:
            batch.close_arenas()
        walls = walls[2:]  # the first meet cold paths
        found.append((arena_bytes(layout, sets), max(walls)))
    session.ask(wire.Release(), wire.Done, seconds=_SECONDS, doing="measuring the overhead")
    (small_bytes, small_ns), (large_bytes, large_ns) = found
    return Ceiling(small_bytes, small_ns, large_bytes, large_ns, max(walls) - min(walls))
