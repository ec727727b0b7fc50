"""The current problems, protocol and software, which a new grading would use."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from pydantic import Field

from harness.files.identity import with_private_cases
from harness.verdict import Environment, FrozenModel, ProblemId


class Current(FrozenModel):
    """The problems, protocol and software that a new grading would use.

    `problems` maps the slug of every problem here to its hash, which covers private cases if `with_private`. The
    software of a device that `environments` lacks is taken from the newest verdict in the ledger. `closed` has the time
    since which a problem takes no more submissions, for those that take none.
    """

    problems: dict[str, str]
    protocol: int
    environments: tuple[Environment, ...] = ()
    with_private: bool = False
    closed: Mapping[str, datetime] = Field(default={})

    def sha256(self, problem: ProblemId) -> str | None:
        """A problem's current hash; None if it is not here.

        Only the organizers' machines have the private cases: elsewhere they are assumed to be unchanged.
        """
        now = self.problems.get(problem.slug)
        if now is None or problem.private is None or self.with_private:
            return now
        return with_private_cases(now, problem.private.sha256)
