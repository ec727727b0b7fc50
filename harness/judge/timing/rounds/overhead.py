"""What a round costs besides its calls, measured before the submission is in the sandbox. Trusted.

The submission answers every later round, so it could make any of them slow, and raise an overhead that was measured
beside them. Here our own calls run, on arenas of two calls each: a round of two calls takes one call longer than a
round of one, and what is left of the latter without that call is the overhead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness import stats
from harness.judge.correctness.graded_case import GradedCase
from harness.judge.session import Session
from harness.judge.session.time_limit import TimeLimit
from harness.judge.timing.rounds.rounds import timed
from harness.wire import commands, replies

_ROUNDS = 12  # of each kind
_SECONDS = 60.0
_DOING = "measuring the overhead"


@dataclass(frozen=True)
class Overhead:
    """What is taken off the time of every round, and how far it may be from the truth, in ns."""

    usual_ns: int
    error_ns: int

    @classmethod
    def of(cls, one_ns: Sequence[int], two_ns: Sequence[int]) -> Overhead:
        """Derive it from the times of rounds of one call and of two.

        The fastest of each count: what a busy machine adds here must not be taken off rounds that it does not delay. By
        as much as half of the rounds of one call are slower, it may be too little. No round is shorter than its
        overhead, which bounds the error.
        """
        fastest = min(one_ns)
        taken_off = min(max(0, 2 * fastest - min(two_ns)), fastest)
        error = min(stats.median(one_ns) - fastest, max(taken_off, fastest - taken_off))
        return cls(taken_off, round(error))


def measure_overhead(session: Session, cases: Sequence[GradedCase]) -> Overhead:
    """Play rounds of our own calls in a sandbox that has no submission yet, on the case with the least memory.

    Raises:
        SandboxError: the runner failed, in our own code.
    """
    case = min(cases, key=lambda case: case.layout.bytes_per_set)
    limit, practice = TimeLimit(_SECONDS), case.batch(2, filled=False)
    try:
        case.bind(session, practice, limit=limit, doing=_DOING)
        session.ask(commands.Unmap(), replies.Done, limit=limit, doing=_DOING)
        played = [_played(session, case, calls) for _ in range(_ROUNDS + 1) for calls in (1, 2)]
    finally:
        practice.close_arenas()
    session.ask(commands.Release(), replies.Done, limit=TimeLimit(_SECONDS), doing=_DOING)
    return Overhead.of(played[2::2], played[3::2])  # the first of each kind ran cold code


def _played(session: Session, case: GradedCase, calls: int) -> int:
    limit, batch = TimeLimit(_SECONDS), case.batch(2, filled=False)
    try:
        wall_ns = timed(session, batch, batch.draw_sample(range(calls)), calls, limit, _DOING)
        session.ask(commands.Unmap(), replies.Done, limit=limit, doing=_DOING)
        return wall_ns
    finally:
        batch.close_arenas()
