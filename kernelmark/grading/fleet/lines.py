"""Jobs and results as lines of JSON, for other languages and for shells: `kernelmark grade-many`. Trusted."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from pydantic import ValidationError

from harness.errors import KernelmarkError, UsageError
from harness.shared.document import DocumentError, parse_json
from kernelmark.grading.fleet.job import Job, JobResult
from kernelmark.grading.fleet.messages import Message
from kernelmark.grading.reward import reward_parts
from kernelmark.project.documents import error_text


class JobLine(Message):
    """One job; the source is in the line, or in a file."""

    problem: str
    """A slug, or a problem's directory."""
    source: str | None = None
    file: Path | None = None
    beside: dict[str, str] | tuple[Path, ...] = ()
    """Other files of the submission: their sources by name, or with `file` their paths."""
    author: str = "anonymous"
    language: str = "py"
    timeout: float | None = None
    run: str | None = None
    key: Any = None
    """Anything; it comes back with the result."""

    def job(self, asked: Asked) -> Job:
        """The job, with its line as its key."""
        if (self.source is None) == (self.file is None):
            raise UsageError(f"line {asked.number}", "has not one of `source` and `file`", "give one of them")
        submission = self.file if self.source is None else self.source
        assert submission is not None
        problem = Path(self.problem) if os.sep in self.problem else self.problem
        return Job(
            problem=problem, submission=submission, beside=self.beside, author=self.author, language=self.language,
            timeout=self.timeout, run=asked.run, key=asked,
        )  # fmt: skip


@dataclass
class Asked:
    """A line of jobs."""

    number: int
    run: str
    """The id that it gives, or one made of the line and its number, so that it is the same the next time."""
    key: object = None
    error: KernelmarkError | None = None
    """What is wrong with the line itself."""


def jobs_of(lines: Iterable[bytes], done: set[str]) -> Iterator[Job]:
    """The jobs of these lines, but for the runs that are done; one that is not valid is a job without a problem."""
    for number, line in enumerate(lines, 1):
        asked = Asked(number, hashlib.sha256(b"%d %s" % (number, line.strip())).hexdigest()[:16])
        if not line.strip():
            continue
        try:
            read = JobLine.model_validate(parse_json(line))
            asked.run, asked.key = read.run or asked.run, read.key
            job = read.job(asked)
        except (DocumentError, ValidationError, UsageError) as error:
            asked.error = error if isinstance(error, UsageError) else _explained(number, error)
            job = Job(problem="", submission="", key=asked)
        if asked.run not in done:
            yield job


def line_of(result: JobResult) -> bytes:
    """One result: `run`, `key`, a `verdict` or a `check` with its `outcome` and `reward`, or an `error`."""
    asked = result.job.key
    assert isinstance(asked, Asked)
    error, found = asked.error or result.error, result.verdict or result.check
    told: dict[str, Any] = {"line": asked.number, "run": asked.run, "key": asked.key}
    if found is not None:
        parts = reward_parts(found)
        told |= {"outcome": found.outcome.value, "message": found.message, "reward": parts.value}
        told["verdict" if result.verdict else "check"] = found.model_dump(mode="json", exclude_none=True)
    if error is not None:
        told["error"] = error_text(error)
    told |= {"device": result.device, "seconds": round(result.seconds, 3), "tries": result.tries}
    return json.dumps({**told, "duplicate": result.duplicate}, ensure_ascii=False).encode() + b"\n"


class ResultFile:
    """Results of this and earlier calls, each in a line; a line that was cut off is removed."""

    def __init__(self, path: Path) -> None:
        """
        Raises:
            UsageError: it cannot be written, another program writes it, or it holds something else.
        """
        try:
            self._file: BinaryIO = path.open("a+b")
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            why = "another program writes it" if isinstance(error, BlockingIOError) else error.strerror
            raise UsageError(str(path), f"cannot be written ({why})") from error
        self._file.seek(0)
        content = self._file.read()
        whole = content.rfind(b"\n") + 1
        self.done: set[str] = set()
        """The runs that have a result which grading again would not change."""
        for number, line in enumerate(content[:whole].splitlines(), 1):
            try:
                told = parse_json(line)
                run, code = told["run"], told.get("error", {}).get("code", "usage")
            except (DocumentError, KeyError, TypeError, AttributeError) as error:
                what = f"line {number} is no result"
                raise UsageError(str(path), what, "name a new file, or one that this command wrote") from error
            if code in ("usage", "problem", "submission", "settings"):
                self.done.add(run)
        self._file.truncate(whole)

    def write(self, line: bytes) -> None:
        """Append a result, at once."""
        self._file.write(line)
        self._file.flush()


def _explained(number: int, error: DocumentError | ValidationError) -> UsageError:
    if isinstance(error, DocumentError):
        return UsageError(f"line {number}", f"is not valid JSON ({error})")
    first = error.errors()[0]
    where = ".".join(map(str, first["loc"]))
    return UsageError(f"line {number}", f"{where}: {first['msg'].lower()}" if where else "is not a JSON object")
