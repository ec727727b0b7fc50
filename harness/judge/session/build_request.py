"""What the judge sends to a runner to build: a submission and its extra files. Trusted; imports no torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harness.device import DEVICES
from harness.errors import SubmissionError
from harness.languages import LANGUAGES
from harness.problem import Problem, ResolvedCase
from harness.problem.foreign_files import foreign_files
from harness.shared.foreign import FORMS
from harness.submission import Submission
from harness.verdict import DeviceKind
from harness.wire import commands


@dataclass(frozen=True)
class BuildRequest:
    """A source file, the command that builds it, and its extra files."""

    build: commands.Build
    source: bytes
    extra_files: Mapping[str, bytes]
    """The contents, by name."""
    objects: bytes = b""
    """The archive of a separate build (`builds`), if there was one."""

    @classmethod
    def of(
        cls,
        problem: Problem,
        submission: Submission,
        cases: Sequence[ResolvedCase],
        device: DeviceKind,
        *,
        line_info: bool = False,
    ) -> BuildRequest:
        """The request to build a submission for these cases.

        Raises:
            ProblemError: a foreign file that submissions may import has changed since the problem was imported.
            SubmissionError: an extra file has the same name as a file of the problem.
        """
        compiled = LANGUAGES[submission.language].compiler is not None
        command = commands.Build(
            language=submission.language,
            symbols=tuple(sorted({case.symbol for case in cases})) if compiled else (problem.entry,),
            architecture=DEVICES[device].architecture(),
            line_info=line_info,
            style=problem.call.style,
            signature=_called_as(problem)[:500],
            # A foreign check compares values, so in its framework a float32 result may answer a float64 reference, and
            # the reverse.
            converts="widening" if problem.foreign and FORMS[problem.foreign.form].decides else "never",
        )
        shown, own = _shown(problem), dict(submission.beside)
        if taken := sorted(shown.keys() & own.keys()):
            raise SubmissionError(taken[0], f"is the name of a file of the problem {problem.slug}", "rename it")
        return cls(command, submission.source, shown | own)


def _called_as(problem: Problem) -> str:
    """How a Python submission is called, for messages: `softmax(x, y): write into y`."""
    if problem.call.style != "writes":
        return problem.signature
    written = [spec.name for spec in problem.tensors if spec.role != "input"]
    return f"{problem.signature}: write into {' and '.join(', '.join(written).rsplit(', ', 1))}"


def _shown(problem: Problem) -> dict[str, bytes]:
    """The foreign files that submissions may import."""
    if problem.foreign is None:
        return {}
    contents = foreign_files(problem.directory, problem.foreign)
    return {source.name: contents[source.name] for source in problem.foreign.files if source.shown}
