"""Whether a result still says what a grading would say today: the one function for the board and for `regrade`.

The ranking marks rows by it. Trusted. A row is stale when its problem, the protocol or the software on its device has
changed; its rank stands, since it was right when it was given, and the mark says what changed.
"""

from __future__ import annotations

from collections.abc import Iterable

from harness.identity import with_private_cases
from harness.verdict import Environment, ProblemId, Record

# What may change under a device that keeps its name. The rest of an environment says which device and sandbox it is.
_FACTS = ("driver", "cuda", "torch", "triton", "python", "image_digest", "power_limit_mw")


class Current(Record):
    """What a grading would rest on now.

    `problems` has the hash of every problem that is here, by its slug; private cases are covered where `with_private`
    says so. Of a device that `environments` does not name, the newest verdict in the ledger tells what runs on it.
    """

    problems: dict[str, str]
    protocol: int
    environments: tuple[Environment, ...] = ()
    with_private: bool = False

    def sha256(self, problem: ProblemId) -> str | None:
        """The hash that a problem has now; None if it is not here.

        Private cases are for the organizers' machines: elsewhere they are taken to be what they were.
        """
        now = self.problems.get(problem.slug)
        if now is None or problem.private is None or self.with_private:
            return now
        return with_private_cases(now, problem.private.sha256)


class Stale(Record):
    """Why a result is out of date, and the run of the same file that took its place, where it was graded again."""

    reason: str
    again: str | None = None


def stale(problem: ProblemId, protocol: int, ran: Environment, current: Current) -> str | None:
    """Why a grading is out of date, in a few words; None while it is not, or where there is nothing to tell it by."""
    now = current.sha256(problem)
    if now is not None and now != problem.sha256:
        return f"the problem changed, {problem.sha256[:12]} is now {now[:12]}"
    if protocol != current.protocol:
        return f"protocol {protocol}, now {current.protocol}"
    here = same_place(ran, current.environments)
    if here is None:
        return None
    return next((_changed(fact, ran, here) for fact in _FACTS if getattr(ran, fact) != getattr(here, fact)), None)


def same_place(ran: Environment, environments: Iterable[Environment]) -> Environment | None:
    """The environment of the same device and sandbox, where there is one among them."""
    return next((other for other in environments if place(other) == place(ran)), None)


def place(ran: Environment) -> tuple[str, str, str]:
    """What makes two environments states of one: the device and the sandbox."""
    return ran.device_kind, ran.device_name, ran.sandbox


def _changed(fact: str, ran: Environment, here: Environment) -> str:
    before, now = (_shown(getattr(each, fact)) for each in (ran, here))
    return f"{fact.replace('_', ' ')} {before}, now {now}"


def _shown(value: object) -> str:
    """Digests are cut: their first digits tell them apart, and all of them fill a line."""
    return "unknown" if value is None else str(value).removeprefix("sha256:")[:12]
