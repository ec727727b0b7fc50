"""Measures the overhead of a round before the submission is in the sandbox. Trusted.

The submission could slow rounds down later, and so raise an overhead that was measured then. Here our own calls run, on
arenas for two calls: a round of two calls takes one call longer than a round of one call, and a round of one call minus
that call is the overhead.
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
    """The time to subtract from every round, and its error, in ns."""

    usual_ns: int
    error_ns: int

    @classmethod
    def of(cls, one_ns: Sequence[int], two_ns: Sequence[int]) -> Overhead:
        """Derive the overhead from the times of rounds of one call and of two calls.

        The fastest round of each kind counts, since a delay by other programs must not be subtracted from later rounds.
        So the overhead may be too small, by the difference between the median and the fastest round of one call. No
        round is shorter than its overhead, which also bounds the error.
        """
        fastest_ns = min(one_ns)
        overhead_ns = min(max(0, 2 * fastest_ns - min(two_ns)), fastest_ns)
        error_ns = min(stats.median(one_ns) - fastest_ns, max(overhead_ns, fastest_ns - overhead_ns))
        return cls(overhead_ns, round(error_ns))


def measure_overhead(session: Session, cases: Sequence[GradedCase]) -> Overhead:
    """Play rounds of our own calls in a sandbox without a submission, on the case with the least memory.

    Raises:
        SandboxError: the runner failed.
    """
    case = min(cases, key=lambda case: case.layout.bytes_per_set)
    limit, practice = TimeLimit(_SECONDS), case.batch(2, filled=False)
    try:
        case.bind(session, practice, limit=limit, doing=_DOING)
        session.ask(commands.Unmap(), replies.Done, limit=limit, doing=_DOING)
        rounds_ns = [_play(session, case, calls) for _ in range(_ROUNDS + 1) for calls in (1, 2)]
    finally:
        practice.close_arenas()
    session.ask(commands.Release(), replies.Done, limit=TimeLimit(_SECONDS), doing=_DOING)
    return Overhead.of(rounds_ns[2::2], rounds_ns[3::2])  # the first of each kind ran cold code


def _play(session: Session, case: GradedCase, calls: int) -> int:
    """Play one round; returns its time in ns."""
    limit, batch = TimeLimit(_SECONDS), case.batch(2, filled=False)
    try:
        wall_ns = timed(session, batch, batch.draw_sample(range(calls)), calls, limit, _DOING)
        session.ask(commands.Unmap(), replies.Done, limit=limit, doing=_DOING)
        return wall_ns
    finally:
        batch.close_arenas()
