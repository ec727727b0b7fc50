"""The workers of this machine, some for each GPU or one for its CPU, as the dispatcher sees them. Trusted; no torch."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path

from pydantic import ValidationError

from harness.errors import HarnessError
from kernelmark.grading.fleet.messages import JobAnswer, JobCancel, JobRequest, WorkerLost, WorkerReady
from kernelmark.grading.fleet.shares import divided, near
from kernelmark.project.choice import cuda_is_here, visible_gpus
from kernelmark.project.settings import DeviceChoice
from kernelmark.text.terminal import counted, warn

PROGRAM = (sys.executable, "-m", "kernelmark.grading.fleet.worker")
_START_S, _END_S = 120.0, 60.0
# glibc keeps what each thread has freed: of 40 small jobs a worker kept 800 MiB without this, and 480 with it.
_ENVIRONMENT = {"MALLOC_ARENA_MAX": "2"}


class WorkerProcess:
    """One worker process; a lost one is replaced when the next job comes."""

    def __init__(
        self,
        root: Path,
        slots: int,
        environment: Mapping[str, str],
        cpus: Sequence[int] = (),
        program: Sequence[str] = PROGRAM,
        *,
        judges: int = 1,
        known: Path | None = None,
    ) -> None:
        """
        Args:
            judges: how many workers its device has.
            known: the folder in which they share the times of baselines; made when the first starts, and removed by the
                last that ends. None: it has none to share them with.
        """
        self._command = [*program, str(root), "--slots", str(slots), "--judges", str(judges)]
        self._known = known
        if known is not None:
            self._command += ["--known", str(known)]
        if cpus:
            self._command += ["--cpus", ",".join(map(str, cpus))]
        self._environment = {**_ENVIRONMENT, **environment}
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._waiting: dict[str, Future[JobAnswer]] = {}
        self._ready: Future[WorkerReady] = Future()
        self._reader: threading.Thread | None = None
        self._closed, self._lost = False, ""
        self.slots, self.device = slots, ""
        self.gpu = environment.get("CUDA_VISIBLE_DEVICES", "")

    def start(self) -> None:
        """Begin to start the process, if it is not there."""
        with self._lock:
            self._running()

    def wait(self) -> None:
        """Wait until it is up.

        Raises:
            HarnessError: it did not start.
        """
        try:
            self._ready.result()
        except WorkerLost as error:
            raise HarnessError(f"a worker of the fleet did not start ({error})", "run `kernelmark doctor`") from error

    def submit(self, request: JobRequest) -> Future[JobAnswer]:
        """Hand over a job. If the worker ends before its answer, the next job starts it again."""
        answer: Future[JobAnswer] = Future()
        try:
            with self._lock:
                process = self._running()
                self._waiting[request.run] = answer
        except (WorkerLost, OSError) as error:
            answer.set_exception(WorkerLost(str(error)))
            return answer
        assert process.stdin is not None
        try:
            process.stdin.write(request.line())
            process.stdin.flush()
        except (BrokenPipeError, ValueError):  # it has just ended
            with self._lock:
                unseen = self._waiting.pop(request.run, None)
            if unseen is not None:  # by its reader, which otherwise sets the exception
                unseen.set_exception(WorkerLost("a worker ended"))
        return answer

    def cancel(self, run: str) -> None:
        """End a job that it has."""
        with self._lock:
            process = self._process if run in self._waiting else None
        if process is None:
            return
        assert process.stdin is not None
        with suppress(BrokenPipeError, ValueError):  # it has just ended
            process.stdin.write(JobCancel(cancelled=run).line())
            process.stdin.flush()

    def close(self) -> None:
        """End the process and the sandboxes of its jobs; it does not start again."""
        with self._lock:
            self._closed, process = True, self._process
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

    def _running(self) -> subprocess.Popen[bytes]:
        """The process, which is started if it is not there. The lock is held."""
        if self._closed:
            raise WorkerLost("the fleet was closed")
        if self._process is None:
            if self._lost:
                warn(f"{self._lost}; another one takes its place")
            self._ready = Future()
            if self._known is not None:
                self._known.mkdir(mode=0o700, exist_ok=True)
            # Outside the terminal's group: Ctrl-C is for the dispatcher, which decides what becomes of the workers.
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=self._environment, process_group=0
            )
            self._reader = threading.Thread(target=self._read, args=(self._process, self._ready), daemon=True)
            self._reader.start()
        return self._process

    def _read(self, process: subprocess.Popen[bytes], ready: Future[WorkerReady]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        late = threading.Timer(_START_S, process.kill)
        late.daemon = True
        late.start()
        try:
            for line in process.stdout:
                if not ready.done():
                    got_ready = WorkerReady.model_validate_json(line)
                    self.device = got_ready.device
                    late.cancel()
                    ready.set_result(got_ready)
                    continue
                got = JobAnswer.model_validate_json(line)
                with self._lock:
                    waiting = self._waiting.pop(got.run, None)
                if waiting is not None:
                    waiting.set_result(got)
        except ValidationError:  # a line that was cut off when it was killed
            process.kill()
        lost = WorkerLost(f"a worker ended with status {process.wait()}")
        late.cancel()
        process.stdout.close()
        with suppress(BrokenPipeError):
            process.stdin.close()
        with self._lock:
            waiting_for, self._waiting = self._waiting, {}
            self._lost = f"{lost} while it had {counted(len(waiting_for), 'job')}"
            if self._process is process:
                self._process = None
        if not ready.done():
            ready.set_exception(lost)
        for answer in waiting_for.values():
            answer.set_exception(lost)


_MOST_SLOTS = 16  # each has a context on the GPU, of half a gigabyte, and its tensors
# Python runs one thread of a process at a time: a worker of sixteen slots kept one processor busy, whatever waited.
_CPUS_OF_A_WORKER, _MOST_WORKERS = 8, 4


def local_workers(
    root: Path,
    device: DeviceChoice,
    slots: int | None,
    environment: Mapping[str, str] = os.environ,
    devices: int | None = None,
) -> list[WorkerProcess]:
    """Workers that are not started yet; `slots` is the number of jobs that each device has at a time.

    A GPU has several where there are processors for them; a lock keeps them apart while anything is timed.
    """
    gpus = visible_gpus()[:devices] if device != "cpu" and cuda_is_here() else []
    if not gpus:
        # Only one submission at a time is timed on a CPU, and other tests would disturb its times.
        return [WorkerProcess(root, slots or 1, {**environment, "CUDA_VISIBLE_DEVICES": ""})]
    parts = divided([near(gpu.pci_address) for gpu in gpus])
    workers = []
    for gpu, cpus in zip(gpus, parts, strict=True):
        mine = slots or max(1, min(_MOST_SLOTS, len(cpus)))
        judges = max(1, min(mine, len(cpus) // _CPUS_OF_A_WORKER, _MOST_WORKERS))
        known = Path(tempfile.gettempdir(), f"kernelmark-known-{secrets.token_hex(8)}") if judges > 1 else None
        its = {**environment, "CUDA_VISIBLE_DEVICES": gpu.uuid}
        for number, own in enumerate(divided([set(cpus)] * judges)):
            share = mine // judges + (number < mine % judges)
            workers.append(WorkerProcess(root, share, its, own, judges=judges, known=known))
    return workers
