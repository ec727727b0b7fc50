"""Whether a worker can grade: after harness errors of several authors in a row it tries a kernel that is right.

Trusted.
"""

from __future__ import annotations

from kernelmark.service.work import FaultKind, Task

_AUTHORS = 3
"""So many different ones have a harness error in a row before a worker doubts itself: one author may cause them."""


class Fitness:
    """What the answers of a worker say about itself."""

    def __init__(self) -> None:
        self._authors = set[str]()
        self.last_problem = ""
        """That of the last error."""
        self.why_not = ""
        """Why it cannot grade, as found by its own kernel; empty if it can, as far as it knows."""

    def ended(self, task: Task, fault: FaultKind | None) -> None:
        """Note how a grading has ended; `fault` None: with a result."""
        if fault in (None, "usage"):
            self._authors.clear()
        elif fault != "judge-lost":
            self._authors.add(task.author)
            self.last_problem = task.problem

    @property
    def is_in_doubt(self) -> bool:
        """Whether it must try its own kernel before it claims more."""
        return len(self._authors) >= _AUTHORS or bool(self.why_not)

    def tried(self, why_not: str) -> None:
        """Note what became of its own kernel: why that was not accepted, or nothing."""
        self.why_not = why_not
        self._authors.clear()
