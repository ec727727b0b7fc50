"""The outcomes of a grading, and its stages."""

from __future__ import annotations

from enum import StrEnum


class Outcome(StrEnum):
    """The result for a submission. Failures of the harness are not outcomes but `HarnessError`s."""

    ACCEPTED = "accepted"
    WRONG_ANSWER = "wrong_answer"
    COMPILE_ERROR = "compile_error"
    RUNTIME_ERROR = "runtime_error"
    TIMEOUT = "timeout"
    MEMORY_LIMIT = "memory_limit"
    REJECTED = "rejected"
    UNSUPPORTED = "unsupported"
    """Triton's interpreter cannot run it, or it needs a GPU: neither right nor wrong."""
    INCOMPLETE = "incomplete"
    """A check of only some of the tests, which pass; verdicts never have this outcome."""

    @property
    def exit_code(self) -> int:
        """The command line's exit status for this outcome (2 and 7 belong to the two exception families)."""
        return _EXIT_CODES[self]


_EXIT_CODES = {
    Outcome.ACCEPTED: 0,
    Outcome.WRONG_ANSWER: 1,
    Outcome.COMPILE_ERROR: 3,
    Outcome.RUNTIME_ERROR: 4,
    Outcome.MEMORY_LIMIT: 4,
    Outcome.TIMEOUT: 5,
    Outcome.REJECTED: 6,
    Outcome.UNSUPPORTED: 8,
    Outcome.INCOMPLETE: 9,
}


class Stage(StrEnum):
    """The stages of one grading, in order."""

    BUILD = "build"
    TEST = "test"
    RECORD = "record"
    """Calls are recorded as data, for a launcher to replay."""
    TIME = "time"
    """Rounds of plain calls, before the hidden tests."""
    HIDDEN = "hidden"
    REPLAY = "replay"
    """A launcher makes the recorded calls, after the hidden tests."""
