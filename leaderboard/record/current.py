"""What a grading would rest on now: the problems that are here, the protocol, the software of a device."""

from __future__ import annotations

from harness.identity import with_private_cases
from harness.verdict import Environment, ProblemId, Record


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
