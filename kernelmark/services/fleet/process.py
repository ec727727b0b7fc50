"""A worker in a process of this machine, as the dispatcher sees it. Trusted."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path

from pydantic import ValidationError

from harness.errors import HarnessError
from kernelmark.services.fleet.engine import WorkerLost
from kernelmark.services.fleet.messages import Answer, Ready, Request

_START_S, _END_S = 120.0, 60.0


class WorkerProcess:
    """One worker process; a lost one is replaced when the next job comes."""

    def __init__(self, root: Path, slots: int, environment: Mapping[str, str], cpus: Sequence[int] = ()) -> None:
        self._command = [sys.executable, "-m", "kernelmark.services.fleet.worker", str(root), "--slots", str(slots)]
        if cpus:
            self._command += ["--cpus", ",".join(map(str, cpus))]
        self._environment = dict(environment)
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._waiting: dict[str, Future[Answer]] = {}
        self._ready: Future[Ready] = Future()
        self._reader: threading.Thread | None = None
        self.slots = slots

    def start(self) -> None:
        """Begin to start the process, if it is not there."""
        with self._lock:
            if self._process is not None:
                return
            self._ready = Future()
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=self._environment
            )
            self._reader = threading.Thread(target=self._read, args=(self._process, self._ready), daemon=True)
            self._reader.start()

    def device(self) -> str:
        """The name of its device; waits until it is up.

        Raises:
            HarnessError: it did not start.
        """
        try:
            return self._ready.result(_START_S).device
        except (WorkerLost, TimeoutError) as error:
            raise HarnessError(f"a worker of the fleet did not start ({error})", "run `kernelmark doctor`") from error

    def submit(self, request: Request) -> Future[Answer]:
        """Hand over a job. The future's `WorkerLost` says that the worker ended before its answer."""
        self.start()
        answer: Future[Answer] = Future()
        with self._lock:
            process = self._process
            self._waiting[request.run] = answer
        try:
            if process is None:
                raise BrokenPipeError
            assert process.stdin is not None
            process.stdin.write(request.line())
            process.stdin.flush()
        except (BrokenPipeError, ValueError):  # it has just ended; its reader may not have seen that
            with self._lock:
                self._waiting.pop(request.run, None)
            if not answer.done():
                answer.set_exception(WorkerLost("a worker ended"))
        return answer

    def close(self) -> None:
        """End the process and the sandboxes of its jobs."""
        with self._lock:
            process = self._process
        if process is None:
            return
        assert process.stdin is not None
        with suppress(BrokenPipeError):
            process.stdin.close()
        try:
            process.wait(_END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if self._reader is not None:
            self._reader.join()

    def _read(self, process: subprocess.Popen[bytes], ready: Future[Ready]) -> None:
        assert process.stdout is not None
        try:
            for line in process.stdout:
                if not ready.done():
                    ready.set_result(Ready.model_validate_json(line))
                    continue
                got = Answer.model_validate_json(line)
                with self._lock:
                    waiting = self._waiting.pop(got.run, None)
                if waiting is not None:
                    waiting.set_result(got)
        except ValidationError:  # a line that was cut off when it was killed
            process.kill()
        lost = WorkerLost(f"a worker ended with status {process.wait()}")
        with self._lock:
            waiting_for, self._waiting = self._waiting, {}
            if self._process is process:
                self._process = None
        if not ready.done():
            ready.set_exception(lost)
        for answer in waiting_for.values():
            answer.set_exception(lost)
