"""What is to be exported, and what comes of it. Trusted; no torch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from harness.languages import LANGUAGES
from harness.problem import Case, Problem
from harness.shared.call import Style
from harness.shared.foreign import ForeignForm
from harness.submission import Submission


@dataclass(frozen=True)
class Request:
    """A submission of a problem, on its way to another project."""

    problem: Problem
    submission: Submission
    case: Case | None = None
    """Gives the parameters that no input's shape tells."""
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


@dataclass(frozen=True)
class Exported:
    """The file that is handed in, and what its author should know before."""

    text: str
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Form:
    """A form in which another project takes submissions."""

    project: ForeignForm
    """Whose problems it is for."""
    style: Style
    """In which that project calls submissions."""
    write: Callable[[Request], Exported]
    has_boards: bool
    """Whether a file may name its leaderboard and GPUs."""
