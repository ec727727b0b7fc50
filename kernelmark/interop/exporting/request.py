"""The submission to export, and a check of its text, which is parsed and never run. Trusted; no torch."""

from __future__ import annotations

import re
import symtable
from collections.abc import Callable
from dataclasses import dataclass

from harness.errors import UsageError
from harness.languages import LANGUAGES
from harness.problem import Case, Problem
from harness.shared.call import Style
from harness.shared.foreign import FORMS, ForeignForm
from harness.submission import Submission

_INCLUDES_OWN = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"\n]*)"', re.MULTILINE)
_IMPORTS_ALL = re.compile(r"^\s*from\s+\S+\s+import\s+\*", re.MULTILINE)


@dataclass(frozen=True)
class Request:
    """A submission to an imported problem, to be exported to the project that the problem is from."""

    problem: Problem
    submission: Submission
    case: Case | None = None
    """Sets the parameters that no input's shape determines."""
    leaderboard: str | None = None
    gpus: tuple[str, ...] = ()

    @property
    def source(self) -> str:
        """The submission's text."""
        return self.submission.source.decode("utf-8-sig")

    @property
    def compiled(self) -> bool:
        """Whether the submission is C++ or CUDA."""
        return LANGUAGES[self.submission.language].compiler is not None

    @property
    def origin(self) -> str:
        """The comment that says where the file came from."""
        return f"# Written by `kernelmark export`: {self.problem.slug}, sha256 {self.submission.sha256[:12]}\n"

    @property
    def submitted_name(self) -> str:
        """The name that a submission has in the project."""
        assert self.problem.foreign is not None  # or it would have been refused
        return FORMS[self.problem.foreign.form].submission

    def check_source(self) -> None:
        """Check that the submission defines the problem's entry function, and includes no file of its own.

        Raises:
            UsageError: it is not so, or it is not Python; the message names the line of a syntax error.
        """
        name, entry = self.submission.name, self.problem.entry
        if self.compiled:
            if not re.search(rf"\b{entry}", self.source):
                raise UsageError(name, f"no function `{entry}` is defined", "see `kernelmark problems show`")
            if found := _INCLUDES_OWN.search(self.source):
                remedy = "put its text in place of that line, or write <...> if it is one of the compiler's"
                raise UsageError(name, f'needs "{found[1]}", but what is exported is one file', remedy)
            return
        try:
            top = symtable.symtable(self.source, name, "exec")
            defined = entry in top.get_identifiers() and top.lookup(entry).is_local()
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            line = f":{error.lineno}" if isinstance(error, SyntaxError) and error.lineno else ""
            raise UsageError(
                f"{name}{line}", f"is not Python ({getattr(error, 'msg', type(error).__name__)})"
            ) from None
        if not defined and not _IMPORTS_ALL.search(self.source):
            remedy = f"it is called as {self.problem.signature}"
            raise UsageError(name, f"no `{entry}` is defined at the top of the file", remedy)


@dataclass(frozen=True)
class Exported:
    """The file to submit, and warnings for its author."""

    text: str
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class ExportFormat:
    """How another project takes submissions, as `--form` names it."""

    project: ForeignForm
    """The project whose problems can be exported in this format."""
    style: Style
    """How that project calls submissions."""
    write: Callable[[Request], Exported]
    has_boards: bool
    """Whether a file may name its leaderboard and GPUs."""
