"""The exceptions of kernelmark, with their exit statuses, and remedies for unknown names.

There are two families. A `UsageError` is something that the user (or the organizer who wrote the problem) can fix. A
`HarnessError` is a failure of the harness or the machine: it is reported or retried, and never blamed on a participant.
What a *submission* does wrong is not an exception but a `harness.verdict.Outcome`.

This uses only the standard library, since the runner's sandbox contains it.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from typing import ClassVar

_NAMED = 10  # known words that a remedy lists
_VERB = re.compile(
    "(are|branched|cannot|changed|comes|could|defines|differs|does|ended|excludes|exists|fails|goes|handed|has|have|"
    r"holds|is|keeps|must|names|needs|raised|returned|runs|says|takes|times|uses|waits|was|were|with)\b"
)
"""Matches a text that continues a sentence after its subject."""


class KernelmarkError(Exception):
    """The base of all exceptions that kernelmark raises on purpose; `str()` is one line, safe for a terminal."""

    exit_code: ClassVar[int]


class UsageError(KernelmarkError):
    """An error of the user: `where` it is, `what` is wrong, and the `remedy`, shown as one line by `said`."""

    exit_code = 2

    def __init__(self, where: str, what: str, remedy: str = "") -> None:
        self.where, self.what, self.remedy = where, what, remedy
        line = said(where, what) + (f"; {remedy}" if remedy else "")
        super().__init__(" ".join(line.split()))

    def __reduce__(self) -> tuple[type[UsageError], tuple[str, str, str]]:
        """Support copying between processes of other programs; by default only the message would be copied."""
        return type(self), (self.where, self.what, self.remedy)


class ProblemError(UsageError):
    """A problem directory that cannot be used for grading: a bad `problem.toml`, or a `reference.py` that fails."""


class SubmissionError(UsageError):
    """A submission file that cannot be accepted: missing, too large, not text, or in an unknown language."""


class SettingsError(UsageError):
    """A setting that is unknown or has a bad value."""


class HarnessError(KernelmarkError):
    """A failure of the harness or the machine: `what` happened, and the `remedy`, shown as one line."""

    exit_code = 7

    def __init__(self, what: str, remedy: str = "") -> None:
        self.what, self.remedy = what, remedy
        super().__init__(" ".join((f"{what}; {remedy}" if remedy else what).split()))


class SandboxError(HarnessError):
    """A sandbox could not be started, or failed before the submission was loaded into it."""


class DeviceError(HarnessError):
    """The accelerator or its driver failed in the judge's own process."""


class JobTimeoutError(HarnessError):
    """A job of a fleet did not end within the job's timeout, which says nothing about the submission."""


class LedgerError(HarnessError):
    """The ledger cannot be read or appended to, or its chain is broken."""


def said(subject: str, what: str) -> str:
    """Make one sentence: "x.py is empty" if `what` begins with a verb, otherwise "x.py: no such problem"."""
    return f"{subject} {what}" if _VERB.match(what) else f"{subject}: {what}"


def misplaced(key: str, value: object) -> str:
    """The remedy for a key of a whole TOML file that is in one of its tables: a line at the end belongs to the last."""
    if isinstance(value, Mapping):
        return f"`{key}` is a table of its own: write it below a line [{key}]"
    return f"`{key}` belongs above the first table: move the line there"


def nearest(word: str, known: Iterable[str], otherwise: str = "") -> str:
    """A remedy for an unknown word: the nearest known word; if none is near, `otherwise`, by default the first ten."""
    names = list(known)
    if close := difflib.get_close_matches(word, names, n=1):
        return f"did you mean `{close[0]}`?"
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return otherwise or f"known: {', '.join(f'`{name}`' for name in names[:_NAMED]) or 'none'}{more}"
