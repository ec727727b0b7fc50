"""What a round costs besides its calls, measured before the submission is in the sandbox. Trusted.

The submission answers every later round, so it could make any of them slow, and raise an overhead that was measured
beside them. Here our own calls run, on arenas of two calls each: a round of two calls takes one call longer than a
round of one, and what is left of the latter without that call is the overhead.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

from harness import stats, wire
from harness.judge.correctness.graded_case import GradedCase
from harness.judge.session import Session
from harness.judge.session.time_limit import TimeLimit
from harness.judge.timing.rounds.rounds import timed

_ROUNDS = 8  # of each kind
_SECONDS = 60.0
_DOING = "measuring the overhead"
# Later a runner waits while inputs are filled and outputs compared. Without a pause it may not be asleep yet and answer
# 100 µs sooner: on an H200 the spread was 120 µs instead of 20.
_IDLE_S = 0.02
# The standard error of a median of n values is 1.25 σ/√n, and the spread from 10 % to 90 % of a normal law is 2.56 σ.
_SPREAD_TO_SE = 1.25 / 2.56
_SURE = 2.0  # standard errors, for about 95 %


@dataclass(frozen=True)
class Overhead:
    """What is taken off the time of every round, and how far it may be from the truth, in ns."""

    usual_ns: int
    error_ns: int

    @classmethod
    def of(cls, one_ns: Sequence[int], two_ns: Sequence[int]) -> Overhead:
        """From the times of rounds of one call and of two.

        No round is shorter than its overhead: on a machine so busy that the medians tell little, this bounds it.
        """
        most = min(one_ns)
        usual = min(max(0.0, 2 * stats.median(one_ns) - stats.median(two_ns)), most)
        error = _SURE * math.hypot(2 * _error_of_median(one_ns), _error_of_median(two_ns))
        return cls(round(usual), round(min(error, max(usual, most - usual))))


def _error_of_median(times_ns: Sequence[int]) -> float:
    return _SPREAD_TO_SE * stats.spread(times_ns) / math.sqrt(len(times_ns))


def measure_overhead(session: Session, cases: Sequence[GradedCase]) -> Overhead:
    """Play rounds of our own calls in a sandbox that has no submission yet, on the case with the least memory.

    Raises:
        SandboxError: the runner failed, in our own code.
    """
    case = min(cases, key=lambda each: each.layout.bytes_per_set)
    limit, practice = TimeLimit(_SECONDS), case.batch(2, filled=False)
    try:
        case.bind(session, practice, limit=limit, doing=_DOING)
        session.ask(wire.Unmap(), wire.Done, limit=limit, doing=_DOING)
        played = [_played(session, case, calls) for _ in range(_ROUNDS + 1) for calls in (1, 2)]
    finally:
        practice.close_arenas()
    session.ask(wire.Release(), wire.Done, limit=TimeLimit(_SECONDS), doing=_DOING)
    return Overhead.of(played[2::2], played[3::2])  # the first of each kind ran cold code


def _played(session: Session, case: GradedCase, calls: int) -> int:
    time.sleep(_IDLE_S)
    limit, batch = TimeLimit(_SECONDS), case.batch(2, filled=False)
    try:
        wall_ns = timed(session, batch, batch.draw_sample(range(calls)), calls, limit, _DOING)
        session.ask(wire.Unmap(), wire.Done, limit=limit, doing=_DOING)
        return wall_ns
    finally:
        batch.close_arenas()
