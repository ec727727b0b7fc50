"""What a round costs besides its calls, measured before the submission is in the sandbox. Trusted.

Null rounds are answered by the runner, so once a submission is loaded it can slow them, and so raise the overhead that
is subtracted from every sealed time. What the same sandbox needed while it held only our own code bounds that. On a CPU
our own calls also show what a round takes that a null round does not: waking up, and reading memory that the other
process has just written.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from harness import stats, wire
from harness.device import DEVICES
from harness.judge.correctness.batch import Batch
from harness.judge.correctness.graded_case import GradedCase
from harness.judge.correctness.layout import Layout
from harness.judge.session import Session
from harness.judge.session.time_limit import TimeLimit
from harness.judge.timing.plan import Plan, most_sets
from harness.judge.timing.sealed.agreement import ON_A_GPU, Bounds, Gap, median_error_ns

_ROUNDS, _OWN_ROUNDS = 8, 5
_OWN_SHARE = 4  # our own calls use a quarter of the largest inputs: a round takes less time, and has the same gap
_SECONDS = 60.0
_LEAST_GAP_ERROR_NS = 10_000
_DOING = "measuring the overhead"
# Later a runner waits while inputs are filled and outputs compared. Without a pause it may not be asleep yet and answer
# 100 µs sooner: on an H200 the spread was 120 µs instead of 20.
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
    """Bounds on the overhead of a batch by the size of its arenas: linear from small to large ones."""

    small: NullCost
    large: NullCost
    spread_ns: int
    """From 10 % to 90 % of the null rounds over the large arenas: the noise to expect."""
    range_ns: int
    """From the fastest to the slowest of them: no larger noise is believed later."""
    gap: Gap = ON_A_GPU

    def bounds(self, nbytes: int, captured: int) -> Bounds:
        """For batches whose inputs have this size, extrapolated beyond the largest measured."""
        grown = self.large.nbytes - self.small.nbytes
        share = max(0.0, (nbytes - self.small.nbytes) / grown) if grown > 0 else 1.0
        low_ns = self.small.low_ns + share * max(0, self.large.low_ns - self.small.low_ns)
        usual_ns = self.small.usual_ns + share * max(0, self.large.usual_ns - self.small.usual_ns)
        least_gap_ns = max(0, self.gap.usual_ns - self.gap.error_ns)
        low_ns, usual_ns = low_ns + least_gap_ns, usual_ns + self.gap.usual_ns
        return Bounds(round(low_ns), round(usual_ns), self.spread_ns, self.range_ns, captured, self.gap)


def mapped_bytes(layout: Layout, sets: int) -> int:
    """What the runner maps while the clock runs: the inputs. The outputs are mapped earlier."""
    return sets * layout.read_stride


def null_round(session: Session, batch: Batch, limit: TimeLimit, doing: str) -> int:
    """One round without a call over a batch's arenas, by the judge's clock, in ns. Its outputs are not checked."""
    return _unchecked_round(session, batch, range(0), limit, doing)[0]


def _unchecked_round(session: Session, batch: Batch, called: range, limit: TimeLimit, doing: str) -> tuple[int, int]:
    """The time of one round by the judge's clock and by the runner's."""
    with batch.for_a_null_round() as lent:
        sample = lent.draw_sample(range(lent.sets))
        inputs, outputs, *host = lent.descriptors
        session.ask(wire.Assemble(order=tuple(called)), wire.Done, descriptors=[outputs], limit=limit, doing=doing)
        start = time.perf_counter_ns()
        timed = session.ask(wire.Round(), wire.Timed, descriptors=[inputs, *host], limit=limit, doing=doing)
        lent.take(sample)
        wall_ns = time.perf_counter_ns() - start
        session.ask(wire.Unmap(), wire.Done, limit=limit, doing=doing)
        return wall_ns, timed.claimed_ns


def measure_overhead(session: Session, cases: Sequence[GradedCase], plan: Plan) -> Overhead:
    """Run null rounds in a sandbox that has no submission yet, up to the largest inputs of any batch, and on a CPU
    rounds of our own calls.

    Raises:
        SandboxError: the runner failed, in our own code.
    """

    def sets_of(case: GradedCase) -> int:
        return most_sets(case.layout, plan.batch.memory_bytes)

    case = max(cases, key=lambda each: mapped_bytes(each.layout, sets_of(each)))
    largest = sets_of(case)
    practice = _Practice(session, case)
    large, small = ([wall_ns for wall_ns, _ in practice.rounds(sets, _ROUNDS)] for sets in (largest, 1))
    gap = ON_A_GPU
    if DEVICES[case.device].on_host:
        fewer = -(-largest // _OWN_SHARE)
        share = (fewer - 1) / max(1, largest - 1)
        null_ns = (1 - share) * stats.median(small) + share * stats.median(large)
        gap = gap_of(practice.rounds(fewer, _OWN_ROUNDS, called=range(fewer)), null_ns)
    session.ask(wire.Release(), wire.Done, limit=TimeLimit(_SECONDS), doing=_DOING)
    return Overhead(
        small=NullCost.of(mapped_bytes(case.layout, 1), small),
        large=NullCost.of(mapped_bytes(case.layout, largest), large),
        spread_ns=round(stats.spread(large)),
        range_ns=max(large) - min(large),
        gap=gap,
    )


def gap_of(rounds: Sequence[tuple[int, int]], null_ns: float) -> Gap:
    """From rounds of our own calls, whose claims are true; its error is how much smaller the gap of the fastest was."""
    over_ns = [wall_ns - claimed_ns - null_ns for wall_ns, claimed_ns in rounds]
    usual_ns, least_ns = max(0, round(stats.median(over_ns))), max(0, round(min(over_ns)))
    return Gap(usual_ns, max(_LEAST_GAP_ERROR_NS, usual_ns - least_ns))


@dataclass(frozen=True)
class _Practice:
    """Rounds of one case in a sandbox that has no submission."""

    session: Session
    case: GradedCase

    def rounds(self, sets: int, count: int, called: range = range(0)) -> list[tuple[int, int]]:
        """The times of `count` rounds over `sets` sets, by the judge's clock and by the runner's, in ns."""
        limit, practice = TimeLimit(_SECONDS), self.case.batch(sets, filled=False)
        try:
            self.case.bind(self.session, practice, limit=limit, doing=_DOING)
            self.session.ask(wire.Unmap(), wire.Done, limit=limit, doing=_DOING)
            times = []
            for _ in range(count + 1):
                time.sleep(_IDLE_S)
                times.append(_unchecked_round(self.session, practice, called, TimeLimit(_SECONDS), _DOING))
        finally:
            practice.close_arenas()
        return times[1:]  # the first ran cold code
