"""Jobs and results as lines of JSON, for other languages and for shells: `kernelmark grade-many`. Trusted."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NotRequired

from pydantic import ConfigDict, ValidationError
from typing_extensions import TypedDict

from harness.errors import HarnessError, KernelmarkError, UsageError, nearest
from harness.shared.document import DocumentError, parse_json
from harness.verdict import Check, Outcome, Verdict
from kernelmark.grading.fleet.job import Job, JobResult
from kernelmark.grading.fleet.messages import Message
from kernelmark.grading.reward import reward_parts
from kernelmark.project.documents import ErrorText, error_text, portable_here, written


class JobLine(Message):
    """A job as one line of JSON. The source is in the line itself (`source`) or in a file (`file`)."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    problem: str
    """A slug, or a problem's directory."""
    source: str | None = None
    """The kernel's text. A job has this or `file`."""
    file: Path | None = None
    """The path of the kernel's file. A job has this or `source`."""
    beside: dict[str, str] | tuple[Path, ...] = ()
    """The submission's other files: their contents by name with `source`, their paths with `file`."""
    author: str = "anonymous"
    language: str = "py"
    """Of `source`: py, cu or cpp."""
    timeout: float | None = None
    """In seconds."""
    run: str | None = None
    """The run id of the verdict, 16 hexadecimal digits, unique in the input."""
    key: Any = None
    """Any JSON value. It is copied to the result."""

    def job(self, line_id: LineId) -> Job:
        """The job of this line, whose key is `line_id`.

        Raises:
            UsageError: the line has both or neither of `source` and `file`.
        """
        if (self.source is None) == (self.file is None):
            raise UsageError(f"line {line_id.number}", "has not one of `source` and `file`", "give one of them")
        submission = self.file if self.source is None else self.source
        assert submission is not None
        problem = Path(self.problem) if os.sep in self.problem else self.problem
        return Job(
            problem=problem, submission=submission, beside=self.beside, author=self.author, language=self.language,
            timeout=self.timeout, run=line_id.run, key=line_id,
        )  # fmt: skip


class ResultLine(TypedDict):
    """A result as one line of JSON, with an `error`, or with a `verdict` (or a `check`) and what follows from it."""

    line: int
    run: str
    key: Any
    outcome: NotRequired[Outcome]
    message: NotRequired[str]
    reward: NotRequired[float]
    verdict: NotRequired[Verdict]
    check: NotRequired[Check]
    error: NotRequired[ErrorText]
    device: str
    seconds: float
    tries: int
    duplicate: bool


@dataclass
class LineId:
    """Identifies one line of the input, so that its result can be matched to it."""

    number: int
    """Counted from 1."""
    run: str
    """The run id in the line. If it has none, a hash of the line and its number, which is the same in the next call."""
    key: object = None
    error: KernelmarkError | None = None
    """Why the line is not a valid job; None if it is valid."""


def read_jobs(lines: Iterable[bytes], done: set[str]) -> Iterator[Job]:
    """Parse lines into jobs, and skip those whose run is in `done`.

    An invalid line becomes a job without a problem, so that it gets a result like any other; its key has the error. So
    does a line with the run of an earlier line, as the two results could not be told apart.
    """
    lines_by_run: dict[str, int] = {}
    for number, line in enumerate(lines, 1):
        line_id = LineId(number, hashlib.sha256(b"%d %s" % (number, line.strip())).hexdigest()[:16])
        if not line.strip():
            continue
        try:
            found = parse_json(line)
            line_id.key = found.get("key") if isinstance(found, dict) else None
            read = JobLine.model_validate(found)
            if read.run is not None:
                if (first := lines_by_run.setdefault(read.run, number)) != number:
                    what = f"has the run {read.run} of line {first}"
                    raise UsageError(f"line {number}", what, "give each job an id of its own")
                line_id.run = read.run
            job = read.job(line_id)
        except (DocumentError, ValidationError, UsageError) as error:
            line_id.error = error if isinstance(error, UsageError) else _invalid_line(number, error)
            job = Job(problem="", submission="", key=line_id)
        if line_id.error is not None or line_id.run not in done:
            yield job


def result_line(result: JobResult) -> bytes:
    """A result as the line of a `ResultLine`."""
    line_id = result.job.key
    assert isinstance(line_id, LineId)
    error, found = line_id.error or result.error, result.verdict or result.check
    fields: dict[str, Any] = {"line": line_id.number, "run": line_id.run, "key": line_id.key}
    if found is not None:
        parts = reward_parts(found)
        fields |= {"outcome": found.outcome.value, "message": found.message, "reward": parts.value}
        fields["verdict" if result.verdict else "check"] = found.model_dump(mode="json", exclude_none=True)
    if error is not None:
        fields["error"] = error_text(error)
    fields |= {"device": result.device, "seconds": round(result.seconds, 3), "tries": result.tries}
    text = json.dumps({**fields, "duplicate": result.duplicate}, ensure_ascii=False)
    # Half of a surrogate pair, which JSON allows in a key, has no UTF-8; Python's escape of it is that of JSON.
    return portable_here(written("job-result", text)).encode(errors="backslashreplace") + b"\n"


class ResultFile:
    """The file of `--out`: results of this call and of earlier ones, one on each line. It is locked while open."""

    def __init__(self, path: Path) -> None:
        """Open or create the file, and remove an incomplete last line that a killed call may have left.

        Raises:
            UsageError: it cannot be written, another program is writing it, or it does not hold results.
        """
        try:
            self._file: BinaryIO = path.open("a+b")
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            why = "another program writes it" if isinstance(error, BlockingIOError) else error.strerror
            raise UsageError(str(path), f"cannot be written ({why})") from error
        self._file.seek(0)
        content = self._file.read()
        complete_bytes = content.rfind(b"\n") + 1
        self.done: set[str] = set()
        """The runs with a result that is not an error."""
        for number, line in enumerate(content[:complete_bytes].splitlines(), 1):
            try:
                result = parse_json(line)
                run, graded = result["run"], "error" not in result
            except (DocumentError, KeyError, TypeError) as error:
                what = f"line {number} is no result"
                raise UsageError(str(path), what, "name a new file, or one that this command wrote") from error
            if graded:
                self.done.add(run)
        self._file.truncate(complete_bytes)

    def write(self, line: bytes) -> None:
        """Append a result and flush it, so that it survives if this process is killed.

        Raises:
            HarnessError: it could not be written, for example on a full disk.
        """
        try:
            self._file.write(line)
            self._file.flush()
        except OSError as error:
            raise HarnessError(f"{self._file.name}: a result could not be written ({error.strerror})") from error


def _invalid_line(number: int, error: DocumentError | ValidationError) -> UsageError:
    if isinstance(error, DocumentError):
        return UsageError(f"line {number}", f"cannot be read ({error})")
    first = min(error.errors(), key=lambda found: found["type"] != "extra_forbidden")  # it may explain a missing key
    where = ".".join(map(str, first["loc"]))
    if first["type"] == "extra_forbidden":
        return UsageError(f"line {number}", f"has an unknown key `{where}`", nearest(where, JobLine.model_fields))
    return UsageError(f"line {number}", f"{where}: {first['msg'].lower()}" if where else "is not a JSON object")
