"""Answers: what is said to a server of a grading that has ended, kept on this machine until the server has it. Trusted.

A worker that is killed, or whose server is away, sends them later.
"""

from __future__ import annotations

import fcntl
import re
from datetime import UTC, datetime
from pathlib import Path

from pydantic import ValidationError

from harness.errors import HarnessError, KernelmarkError, UsageError
from harness.files import outside
from kernelmark.grading.fleet.messages import JobAnswer, WorkerAway, WorkerLost
from kernelmark.service.work import ANSWER_BYTES, Answer, FaultKind, Lease, TaskError
from kernelmark.text.terminal import warn
from leaderboard.record.durable import write_whole

_MOST_WORKERS = 64  # of one project and server on one machine
_FILE_BYTES = 2 * ANSWER_BYTES


def answer_of(lease: Lease, instance: str, answer: JobAnswer) -> Answer:
    """The answer to a lease, from a judge's."""
    failure = answer.failure()
    if failure is not None:
        return failed(lease, instance, failure)
    found = Answer(
        instance=instance,
        lease=lease.lease,
        verdict=None if answer.verdict is None else answer.verdict.to_json(),
        check=None if answer.check is None else answer.check.model_dump_json(exclude_none=True),
        answered_at=datetime.now(UTC),
    )
    size = len(found.model_dump_json(exclude_none=True).encode())
    if size > ANSWER_BYTES:
        return failed(lease, instance, HarnessError(f"the result has {size:,} bytes, more than {ANSWER_BYTES:,}"))
    return found


def failed(lease: Lease, instance: str, error: KernelmarkError | WorkerLost, fault: FaultKind | None = None) -> Answer:
    """The answer to a lease whose task has no result; `fault` None: as follows from the error.

    `worker` does not follow from any: the server gives such a task to this worker only after its checkout has changed.
    """
    where = error.where if isinstance(error, UsageError) else ""
    what, remedy = (error.what, error.remedy) if isinstance(error, UsageError | HarnessError) else (str(error), "")
    said = TaskError(
        fault=fault or _fault(error),
        error_class=type(error).__name__[:64],
        where=where[:500],
        what=what[:4000],
        remedy=remedy[:2000],
    )
    return Answer(instance=instance, lease=lease.lease, error=said, answered_at=datetime.now(UTC))


def _fault(error: KernelmarkError | WorkerLost) -> FaultKind:
    if isinstance(error, WorkerLost) and not isinstance(error, WorkerAway):
        return "judge-lost"
    return "usage" if isinstance(error, UsageError) else "harness"


class KeptAnswers:
    """A folder of answers, which this process alone uses."""

    def __init__(self, project: Path, origin: str) -> None:
        """Take the first folder that no other process has.

        Raises:
            HarnessError: it cannot be written.
        """
        name = re.sub(r"[^A-Za-z0-9.-]+", "_", origin.partition("://")[2])
        folders = project / ".kernelmark" / "worker" / name
        try:
            for number in range(1, _MOST_WORKERS + 1):
                self.folder = folders / str(number)
                self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                (project / ".kernelmark" / ".gitignore").write_text("*\n")
                self._lock = (self.folder / "lock").open("a+b")
                try:
                    fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    return
                except BlockingIOError:
                    self._lock.close()
        except OSError as error:
            raise HarnessError(f"answers cannot be kept in {folders} ({error.strerror})") from error
        raise HarnessError(f"{_MOST_WORKERS} workers for {origin} run in this project already")

    def put(self, answer: Answer) -> None:
        """Keep an answer; it is on the disk when this returns.

        Raises:
            OSError: it cannot be written.
        """
        write_whole(self._path(answer.lease), answer.model_dump_json(exclude_none=True).encode(), replace=True)

    def all(self) -> list[Answer]:
        """The answers that are kept, the oldest first; a file that holds none is set aside."""
        paths = sorted(self.folder.glob("*.json"), key=lambda path: path.stat().st_mtime_ns)
        found = []
        for path in paths:
            try:
                found.append(Answer.model_validate_json(outside.read(path, _FILE_BYTES)))
            except (OSError, ValidationError):
                self._aside(path, "it is not an answer of this version of kernelmark")
        return found

    def drop(self, lease: str) -> None:
        """Forget an answer that the server has, or does not want any more."""
        self._path(lease).unlink(missing_ok=True)

    def refused(self, lease: str, why: str) -> None:
        """Keep an answer that the server refuses, but do not send it again."""
        self._aside(self._path(lease), why)

    def close(self) -> None:
        """Let another process have the folder."""
        self._lock.close()

    def _path(self, lease: str) -> Path:
        return self.folder / f"{lease}.json"

    def _aside(self, path: Path, why: str) -> None:
        aside = path.with_suffix(".refused")
        path.replace(aside)
        warn(f"an answer was refused ({why}); it is kept in {aside}")
