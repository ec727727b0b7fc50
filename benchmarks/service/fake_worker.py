"""A worker that speaks the real protocol and grades nothing: each job takes a fixed time, and is accepted.

The load generator starts it as a process of its own, which it can kill: `python -m benchmarks.service.fake_worker --to
URL`, with the token in KERNELMARK_TOKEN. Tests use `FakeWorker` in their own process. Like a real worker it claims,
says with heartbeats which leases it holds, reports progress, ends what it is told to end, and answers until it is
heard.
"""

from __future__ import annotations

import argparse
import os
import queue
import secrets
import sys
import threading
import time
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path

from benchmarks.service.connection import Connection, Gone, Refused
from harness.problem import load
from harness.submission import Submission
from harness.verdict import Stage, Verdict
from harness.wire.protocol import PROTOCOL
from kernelmark import __version__
from kernelmark.service.submissions import StageProgress
from kernelmark.service.work import (
    HEARTBEAT_S,
    HEARTBEAT_WAIT_S,
    WORK_PROTOCOL,
    Answer,
    Claim,
    Heartbeat,
    HeartbeatResponse,
    HeldLease,
    Lease,
    Leases,
    ProblemHashes,
    Task,
    TaskError,
    WorkerHello,
    WorkerWelcome,
)
from tests.verdicts import REPLAYED, accepted, as_check

POOL = "Fake GPU"
_ALIVE_S = 60.0
"""Longer than a server believes that a worker is alive."""
_PAUSE_S = 0.1
"""Before it asks a server again that did not answer."""


class FakeWorker:
    """One worker with devices that are threads; it begins with `start`, and `close` ends it."""

    def __init__(
        self,
        url: str,
        token: str,
        problems: dict[str, ProblemHashes],
        *,
        devices: int = 1,
        seconds: float = 0.0,
        pool: str = POOL,
        ahead: bool = True,
    ) -> None:
        """
        Args:
            problems: what it says of its checkout; see `hashes`.
            seconds: how long each device takes for a job.
            ahead: whether it claims one more job than it has idle devices, as real workers do.
        """
        self.url, self.token, self._problems, self.seconds, self.pool = url, token, problems, seconds, pool
        self.devices, self._slots = devices, devices + ahead
        self.instance = secrets.token_hex(16)
        self.ended: queue.SimpleQueue[str] = queue.SimpleQueue()
        """Runs, in the order in which their answers were acknowledged."""
        self.refused: queue.SimpleQueue[str] = queue.SimpleQueue()
        """Why the server took an answer back: the lease had ended, for example."""
        self._jobs: queue.SimpleQueue[Lease | None] = queue.SimpleQueue()
        self._graded: queue.SimpleQueue[Lease | None] = queue.SimpleQueue()
        self._unanswered = 0
        """How many of the leases that are held are graded: their devices go on meanwhile, as those of real workers."""
        self._held: dict[str, StageProgress | None] = {}
        self._changed = threading.Condition()
        self._closed = threading.Event()
        self._threads: list[threading.Thread] = []

    def start(self) -> WorkerWelcome:
        """Say hello, and begin to claim.

        Raises:
            Refused: the server does not take it.
        """
        welcome = self._greeted(Connection(self.url, self.token))
        works = [self._claim, self._beat, *([self._grade] * self.devices), *([self._answer_all] * self.devices)]
        self._threads = [threading.Thread(target=work, daemon=True) for work in works]
        for thread in self._threads:
            thread.start()
        return welcome

    def close(self) -> None:
        """Stop claiming, and end once the jobs at hand are answered."""
        self._closed.set()
        with self._changed:
            self._changed.notify_all()
        for jobs, first in ((self._jobs, 2), (self._graded, 2 + self.devices)):
            for _ in range(self.devices):
                jobs.put(None)
            for thread in self._threads[first : first + self.devices]:
                thread.join(timeout=60)

    def hello(self, connection: Connection) -> WorkerWelcome:
        hello = WorkerHello(
            instance=self.instance,
            version=__version__,
            protocol=WORK_PROTOCOL,
            pool=self.pool,
            device="cuda",
            sandbox="docker",
            devices=self.devices,
            slots=self._slots,
            problems=self._problems,
        )
        answer = connection.keep_asking("POST", "worker/hello", hello.model_dump_json().encode())
        return WorkerWelcome.model_validate_json(answer)

    def _greeted(self, connection: Connection) -> WorkerWelcome:
        """Say hello, and again for as long as an earlier start, which was killed, still counts as alive."""
        until = time.monotonic() + _ALIVE_S
        while True:
            try:
                return self.hello(connection)
            except Refused as error:
                if b"second-worker" not in error.body or time.monotonic() > until:
                    raise
            time.sleep(1.0)

    def claim(self, connection: Connection, free: int, wait_s: float = 0.0) -> tuple[Lease, ...]:
        """Ask for jobs once, however long the server takes to answer."""
        claim = Claim(instance=self.instance, claim=secrets.token_hex(16), free=free, wait_s=wait_s)
        answer = connection.keep_asking("POST", "worker/claim", claim.model_dump_json().encode())
        return Leases.model_validate_json(answer).leases

    def answer(self, connection: Connection, lease: Lease, error: TaskError | None = None) -> None:
        """Answer a lease until it is heard.

        Raises:
            Refused: the server does not want the answer.
        """
        task = lease.task
        graded = None if error else verdict(task, self.pool)
        checked = graded is not None and task.mode == "check"
        answer = Answer(
            instance=self.instance,
            lease=lease.lease,
            verdict=graded.to_json() if graded and not checked else None,
            check=as_check(graded).model_dump_json(exclude_none=True) if graded and checked else None,
            error=error,
            answered_at=datetime.now(UTC),
        )
        connection.keep_asking("POST", "worker/answer", answer.model_dump_json().encode())

    def _claim(self) -> None:
        connection = Connection(self.url, self.token)
        while not self._closed.is_set():
            with self._changed:
                self._changed.wait_for(lambda: self._free() > 0 or self._closed.is_set())
                free = self._free()
            if free <= 0:  # it is closed
                return
            try:
                leases = self.claim(connection, free, wait_s=5.0)
            except (Gone, Refused) as error:
                if isinstance(error, Refused) and not self._known_again(connection, error):
                    raise
                time.sleep(_PAUSE_S)
                continue
            for lease in leases:
                with self._changed:
                    self._held[lease.lease] = None
                self._jobs.put(lease)

    def _free(self) -> int:
        return self._slots - len(self._held) + self._unanswered

    def _known_again(self, connection: Connection, error: Refused) -> bool:
        """Whether the server only wants to be greeted again, and was."""
        if error.status != HTTPStatus.CONFLICT:
            return False
        self.hello(connection)
        return True

    def _beat(self) -> None:
        """Tell the server what is held, at the interval that it asks for, and end what it says."""
        connection = Connection(self.url, self.token)
        while not self._closed.is_set():
            with self._changed:
                held = tuple(HeldLease(lease=lease, progress=progress) for lease, progress in self._held.items())
            beat = Heartbeat(instance=self.instance, held=held, wait_s=min(HEARTBEAT_WAIT_S, 2.0))
            try:
                answer = connection.keep_asking("POST", "worker/heartbeat", beat.model_dump_json().encode())
            except (Gone, Refused):
                time.sleep(_PAUSE_S)
                continue
            for lease in HeartbeatResponse.model_validate_json(answer).end:
                self._give_up(lease)
            self._closed.wait(min(HEARTBEAT_S, 1.0))

    def _give_up(self, lease: str) -> None:
        with self._changed:
            self._held.pop(lease, None)
            self._changed.notify_all()

    def _grade(self) -> None:
        while (lease := self._jobs.get()) is not None:
            with self._changed:
                if lease.lease not in self._held:
                    continue  # the server has ended it meanwhile
                self._held[lease.lease] = StageProgress(stage=Stage.TEST, done=1, total=3, label="prime")
            time.sleep(self.seconds)
            with self._changed:
                self._unanswered += 1
                self._changed.notify_all()
            self._graded.put(lease)

    def _answer_all(self) -> None:
        connection = Connection(self.url, self.token)
        while (lease := self._graded.get()) is not None:
            try:
                self.answer(connection, lease)
                self.ended.put(lease.task.run)
            except Refused as error:
                self.refused.put(f"{lease.task.run}: {error}")
            with self._changed:
                self._unanswered -= 1
            self._give_up(lease.lease)


def hashes(folder: Path, *slugs: str) -> dict[str, ProblemHashes]:
    """What a worker with this checkout says of problems without private cases."""
    problems = [load(folder / slug, final=False) for slug in slugs]
    finals = [load(folder / slug, final=True) for slug in slugs]
    return {
        problem.slug: ProblemHashes(public=problem.sha256, final_public=final.sha256)
        for problem, final in zip(problems, finals, strict=True)
    }


def verdict(task: Task, pool: str = POOL, score_ns: int | None = None) -> Verdict:
    """An accepted verdict that fits the task, about 7 KB of JSON; its time follows from the run, unless it is given."""
    beside = {file.name: file.content for file in task.beside}
    whole = accepted(
        score_ns=score_ns or 20_000 + int(task.run, 16) % 20_000,
        submission=Submission.of(task.source, task.language, author=task.author, name=task.name, beside=beside),
        problem=task.problem,
        problem_sha256=task.problem_sha256,
        protocol=PROTOCOL,
        run=task.run,
        created_at=datetime.now(UTC),
        modes=REPLAYED,
        effort=task.effort,
        device_name=pool,
    )
    # The usual 6 s would be longer than the lease.
    return whole.model_copy(update={"duration_ns": 1_000_000, "requested_baselines": ()})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--to", required=True, metavar="URL")
    parser.add_argument("--problems", type=Path, required=True, help="the folder of the problems")
    parser.add_argument("--slug", default="double")
    parser.add_argument("--devices", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=0.4, help="how long each job takes")
    given = parser.parse_args()
    worker = FakeWorker(
        given.to,
        os.environ["KERNELMARK_TOKEN"],
        hashes(given.problems, given.slug),
        devices=given.devices,
        seconds=given.seconds,
    )
    print(worker.start().model_dump_json(), flush=True)
    sys.stdin.read()  # until whoever started it ends
    worker.close()


if __name__ == "__main__":
    main()
