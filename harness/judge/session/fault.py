"""The exception for what a submission did wrong; the grading turns it into an outcome. Trusted."""

from __future__ import annotations

from harness.verdict import Outcome


class SubmissionFault(Exception):
    """The submission did something that decides its outcome.

    Attributes:
        survives: whether the runner can take further commands.
        memory_fault: whether the submission accessed memory that it may not access.
    """

    def __init__(
        self, outcome: Outcome, message: str, traceback: str = "", *, survives: bool = False, memory_fault: bool = False
    ) -> None:
        super().__init__(message)
        self.outcome, self.message, self.traceback = outcome, message, traceback
        self.survives, self.memory_fault = survives, memory_fault
        self.printed = ""
        """What the submission printed, if its sandbox has ended."""
