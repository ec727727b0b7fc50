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
from harness.judge.time_limit import TimeLimit
from harness.judge.timing import Plan, most_sets
from harness.problem import Problem, ResolvedCase
from harness.verdict import DeviceKind

_ROUNDS = 8
_SECONDS = 60.0
# Later a runner waits while inputs are filled and outputs compared. Without a pause it has not gone to sleep, and
# answers 100 µs sooner, or not: on an H200 the spread was 120 µs instead of 20.
_IDLE_S = 0.02


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

    def bounds(self, nbytes: int, captured: int) -> Bounds:
        """For batches whose inputs have this size; larger ones than were measured continue the line."""
        grown = self.large.nbytes - self.small.nbytes
        share = max(0.0, (nbytes - self.small.nbytes) / grown) if grown > 0 else 1.0
        low_ns = self.small.low_ns + share * max(0, self.large.low_ns - self.small.low_ns)
        usual_ns = self.small.usual_ns + share * max(0, self.large.usual_ns - self.small.usual_ns)
        return Bounds(round(low_ns), round(usual_ns), self.spread_ns, self.range_ns, captured)


def mapped_bytes(layout: Layout, sets: int) -> int:
    """What the runner maps while the clock runs: the inputs. The outputs are mapped before."""
    return sets * layout.input_stride


def null_round(session: Session, batch: Batch, limit: TimeLimit, doing: str) -> int:
    """One round without a call over a batch's arenas, by the judge's clock, in ns. Nothing of it is compared."""
    with batch.for_a_null_round() as lent:
        sample = lent.draw_sample(range(lent.sets))
        inputs, outputs = lent.descriptors
        session.ask(wire.Assemble(order=()), wire.Done, descriptors=[outputs], limit=limit, doing=doing)
        start = time.perf_counter_ns()
        session.ask(wire.Round(), wire.Timed, descriptors=[inputs], limit=limit, doing=doing)
        lent.take(sample)
        wall_ns = time.perf_counter_ns() - start
        session.ask(wire.Unmap(), wire.Done, limit=limit, doing=doing)
        return wall_ns


def measure_overhead(
    session: Session, problem: Problem, cases: Sequence[ResolvedCase], device: DeviceKind, plan: Plan
) -> Overhead:
    """Run null rounds in a sandbox that has no submission yet, up to the largest inputs that a batch of the cases has.

    Raises:
        SandboxError: the runner failed; it is our own code that failed.
    """

    def sets_of(case: ResolvedCase) -> int:
        return most_sets(Layout(case), plan.memory_bytes)

    case = max(cases, key=lambda each: mapped_bytes(Layout(each), sets_of(each)))
    largest = sets_of(case)
    large, walls_ns = _null_cost(session, problem, case, device, largest)
    small, _ = _null_cost(session, problem, case, device, 1)
    session.ask(wire.Release(), wire.Done, limit=TimeLimit(_SECONDS), doing="measuring the overhead")
    return Overhead(small, large, round(stats.spread(walls_ns)), max(walls_ns) - min(walls_ns))


def _null_cost(
    session: Session, problem: Problem, case: ResolvedCase, device: DeviceKind, sets: int
) -> tuple[NullCost, list[int]]:
    layout = Layout(case)
    doing = "measuring the overhead"
    commands = layout.commands(case, problem.parameters, sets)
    practice = Batch(layout, device, sets, filled=False)
    try:
        limit = TimeLimit(_SECONDS)
        session.bind(commands, practice.descriptors, limit=limit, doing=doing)
        session.ask(wire.Unmap(), wire.Done, limit=limit, doing=doing)
        walls_ns = []
        for _ in range(_ROUNDS + 1):
            time.sleep(_IDLE_S)
            walls_ns.append(null_round(session, practice, TimeLimit(_SECONDS), doing))
    finally:
        practice.close_arenas()
    del walls_ns[0]  # it met code that never ran
    return NullCost.of(mapped_bytes(layout, sets), walls_ns), walls_ns
