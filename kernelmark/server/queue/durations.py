"""How long a grading takes: what is usual, what is reserved while that is unknown, and what the problem's limits allow.

Admission, leases, the status of submissions and what follows the end of a lease call it. Nothing here changes anything.
"""

from __future__ import annotations

from statistics import median

from sqlalchemy import Connection, bindparam, select

from harness.kinds import Effort
from harness.problem import Problem
from kernelmark.server.database.tables import gradings, sources, submissions
from kernelmark.service.submissions import Mode

LEAST_NS = 10**9
"""What a grading costs its owner's share of the devices at least: to start a sandbox takes as long. What ends before
its worker has reported progress would otherwise be free, and one owner would get all devices with it."""
_MOST_RESERVED_NS = 60 * 10**9
_START_S = 60  # until a sandbox is there, on a machine that is busy
_USUAL_OF = 5
_NEWEST = (
    select(gradings.c.device_ns, submissions.c.effort, sources.c.language)
    .join(submissions, submissions.c.run == gradings.c.submission)
    .join(sources, sources.c.sha256 == submissions.c.source)
    .where(
        gradings.c.problem == bindparam("problem"),
        gradings.c.pool == bindparam("pool"),
        gradings.c.mode == bindparam("mode"),
        gradings.c.ended_ns > 0,
        gradings.c.outcome == "accepted",
        gradings.c.visible_ns <= bindparam("now"),  # an expected time must not tell how long a hidden end took
    )
    .order_by(gradings.c.ended_ns.desc())
    .limit(4 * _USUAL_OF)
)


def expected_ns(
    connection: Connection, problem: Problem, pool: str, mode: Mode, effort: Effort, language: str, now_ns: int
) -> int:
    """How long such a grading usually takes: the median of the newest; `reserved_ns` if there are none.

    Gradings with the same effort and language count; if there are none, all of the same problem, pool and mode.
    """
    newest = connection.execute(_NEWEST, {"problem": problem.slug, "pool": pool, "mode": mode, "now": now_ns}).all()
    alike = [row.device_ns for row in newest if (row.effort, row.language) == (effort, language)]
    took = alike or [row.device_ns for row in newest]
    return max(LEAST_NS, round(median(took[:_USUAL_OF]))) if took else reserved_ns(problem, mode)


def reserved_ns(problem: Problem, mode: Mode) -> int:
    """What is reserved of the limits for a grading while nothing like it was graded.

    It is not all that the problem's limits allow. That is many minutes, and gradings take seconds: one that waits would
    reserve all that its owner has for a day, and nothing else of theirs could be queued. What a grading takes beyond
    this counts when it has ended, and few of an owner can wait at once.
    """
    return min(limit_ns(problem, mode), _MOST_RESERVED_NS)


def limit_ns(problem: Problem, mode: Mode) -> int:
    """The most that a grading may take by the problem's limits, as far as they are public."""
    limits = problem.limits
    seconds = _START_S + limits.build_s + len(problem.tests) * limits.call_s
    if mode != "check":
        seconds += len(problem.benchmarks) * limits.time_s
    return round(seconds * 1e9)


def step_ns(problem: Problem) -> int:
    """The longest time between two reports of progress. All hidden tests are one step."""
    limits = problem.limits
    return round((_START_S + max(limits.build_s, len(problem.tests) * limits.call_s, limits.time_s)) * 1e9)
