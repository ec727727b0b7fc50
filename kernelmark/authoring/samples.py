"""The samples of a problem: submissions whose outcome is known, as `samples/expected.toml` lists them.

The lint grades them, and so does the benchmark of outcomes. Trusted; a sample's source is read, never run.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from harness.errors import ProblemError, SubmissionError
from harness.files import outside
from harness.kinds import DeviceKind
from harness.languages import LANGUAGES
from harness.problem.key import validated
from harness.shared.document import DocumentError, parse_toml
from harness.submission import Submission
from harness.verdict import Outcome

EXPECTED = Path("samples") / "expected.toml"


class ProblemSample(BaseModel):
    """One table of `expected.toml`: a submission, and its expected outcome."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    file: Annotated[str, Field(pattern=r"^\w[\w.-]*\.(py|cu|cpp)$", description="a file in the same folder")]
    replace: dict[str, str] = Field(default={}, description="texts that occur once in it, and what replaces each")
    outcome: Outcome = Field(description="what its grading must say, such as `wrong_answer`")
    devices: Annotated[tuple[DeviceKind, ...], Field(min_length=1)] = ("cpu", "cuda")
    message: str = Field(default="", description="a regular expression, to be found in the verdict's message")

    def runs_on(self, device: DeviceKind) -> bool:
        """Whether it is graded where this device is: not a `.cu` without a GPU. A GPU's machine has a CPU, too."""
        return device in self.devices and (device == "cuda" or device in LANGUAGES[Path(self.file).suffix[1:]].devices)


class _Samples(BaseModel):
    """A whole `expected.toml`."""

    model_config = ConfigDict(frozen=True, extra="allow")
    __pydantic_extra__: dict[str, ProblemSample] = Field(init=False)


def read_samples(directory: Path) -> dict[str, ProblemSample]:
    """The samples of a problem's directory by name, none if it has no `samples/expected.toml`.

    Raises:
        ProblemError: the file is wrong, a sample that it names is not there, or a replacement does not fit.
    """
    path = directory / EXPECTED
    if not path.is_file():
        return {}
    try:
        tables = parse_toml(outside.read(path, outside.TEXT_BYTES))
    except OSError as error:
        raise ProblemError(str(path), f"cannot be read ({error.strerror})") from None
    except DocumentError as error:
        raise ProblemError(str(path), f"cannot be read (it {error})") from None
    samples = validated(_Samples, tables, path).__pydantic_extra__
    for name, sample in samples.items():
        try:
            re.compile(sample.message)
        except re.error as error:
            what = f"sample `{name}`: `message` is not a regular expression ({error})"
            raise ProblemError(str(path), what, r"put `\` before what is meant literally, as in '\('") from None
        if not (path.parent / sample.file).is_file():
            raise ProblemError(str(path), f"sample `{name}` names {sample.file}, which is not there")
        if sample.replace:
            as_submission(directory, name, sample)
    return samples


def as_submission(directory: Path, name: str, sample: ProblemSample) -> Submission:
    """A sample of a problem's directory as a submission: its file, with the replacements made one after the other.

    Raises:
        ProblemError: the file cannot be submitted, or a text to be replaced is not in it, or several times.
    """
    path = directory / EXPECTED
    try:
        read = Submission.read(path.parent / sample.file, "organizer")
    except SubmissionError as error:
        raise ProblemError(str(path), f"sample `{name}`: {error}") from None
    source = read.source.decode()
    for old, new in sample.replace.items():
        if (count := source.count(old)) != 1:
            what = f"sample `{name}` replaces {old!r}, which occurs {count} times in {sample.file}"
            raise ProblemError(str(path), what, "give a text that occurs once")
        source = source.replace(old, new)
    return Submission.of(source, read.language, author="organizer", name=f"{name}.{read.language}")
