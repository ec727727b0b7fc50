"""The worker processes of this machine: one or several for each GPU, or one for its CPU. Trusted; imports no torch.

The dispatcher starts them, sends them jobs and reads their answers.
"""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
import tempfile
import threading
import weakref
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path

from pydantic import ValidationError

from harness.errors import HarnessError
from harness.judge.setup import ignore
from kernelmark.grading.fleet.messages import (
    REPLY,
    JobAnswer,
    JobCancel,
    JobProgress,
    JobRequest,
    OnStep,
    WorkerAway,
    WorkerLost,
    WorkerReady,
)
from kernelmark.grading.fleet.shares import divide, local_cpus
from kernelmark.project.choice import cuda_is_here, visible_gpus
from kernelmark.project.settings import DeviceChoice
from kernelmark.text.terminal import counted, warn

PROGRAM = (sys.executable, "-m", "kernelmark.grading.fleet.worker")
_START_S, _END_S = 120.0, 60.0
# glibc keeps memory that threads have freed: after 40 small jobs a worker held 800 MiB without this, and 480 with it.
_ENVIRONMENT = {"MALLOC_ARENA_MAX": "2"}

_PIPED: weakref.WeakSet[subprocess.Popen[bytes]] = weakref.WeakSet()


def _let_go() -> None:
    """In a forked child: let go of the workers' pipes, since they end when no process holds the other end any more.

    The descriptors stay open, as files in this process still refer to their numbers.
    """
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    for process in _PIPED:
        for pipe in (process.stdin, process.stdout):
            if pipe is not None and not pipe.closed:
                os.dup2(null, pipe.fileno(), inheritable=False)
    os.close(null)


os.register_at_fork(after_in_child=_let_go)


class WorkerProcess:
    """One worker process. If it ends unexpectedly, the next job starts another one in its place."""

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
            judges: how many workers its device has, including this one.
            known: the folder in which the workers of a device share the times of baselines. The first worker creates
                it. Each removes it at its end, as all end together. None: this worker shares with no other.
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
        self._watching: dict[str, OnStep] = {}
        self._ready: Future[WorkerReady] = Future()
        self._reader: threading.Thread | None = None
        self._closed, self._lost = False, ""
        self.slots, self.device = slots, ""
        self.gpu = environment.get("CUDA_VISIBLE_DEVICES", "")

    def start(self) -> None:
        """Start the process if it is not running, without waiting until it is ready."""
        with self._lock:
            self._running()

    def wait(self) -> None:
        """Wait until the process is ready for jobs.

        Raises:
            HarnessError: it did not start.
        """
        try:
            self._ready.result()
        except WorkerLost as error:
            raise HarnessError(f"a worker of the fleet did not start ({error})", "run `kernelmark doctor`") from error

    def submit(self, request: JobRequest, on_step: OnStep = ignore) -> Future[JobAnswer]:
        """Send a job to the worker. The future gets its answer, or `WorkerLost` if the worker ends before that."""
        answer: Future[JobAnswer] = Future()
        try:
            with self._lock:
                process = self._running()
                self._waiting[request.run], self._watching[request.run] = answer, on_step
        except (WorkerLost, HarnessError, OSError) as error:
            answer.set_exception(WorkerAway(str(error)))
            return answer
        assert process.stdin is not None
        try:
            process.stdin.write(request.line())
            process.stdin.flush()
        except (BrokenPipeError, ValueError):  # it has just ended
            with self._lock:
                unanswered = self._ended(request.run)
            if unanswered is not None:  # otherwise `_read` has removed it, and sets the exception
                unanswered.set_exception(WorkerLost("a worker ended"))
        return answer

    def cancel(self, run: str) -> None:
        """Ask the worker to end a job that it has not answered yet."""
        with self._lock:
            process = self._process if run in self._waiting else None
        if process is None:
            return
        assert process.stdin is not None
        with suppress(BrokenPipeError, ValueError):  # it has just ended
            process.stdin.write(JobCancel(cancelled=run).line())
            process.stdin.flush()

    def close(self) -> None:
        """End the process and the sandboxes of its jobs. Later jobs are refused."""
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
        """The process; it is started if it is not running. The caller holds the lock."""
        if self._closed:
            raise WorkerLost("the fleet was closed")
        if self._process is None:
            if self._lost:
                warn(f"{self._lost}; another one takes its place")
            self._ready = Future()
            if self._known is not None:
                self._known.mkdir(mode=0o700, exist_ok=True)
            pipe = subprocess.PIPE
            try:  # In its own process group: Ctrl-C reaches only the dispatcher, which decides when the workers end.
                self._process = subprocess.Popen(
                    self._command, stdin=pipe, stdout=pipe, env=self._environment, process_group=0
                )
            except OSError as error:
                raise HarnessError(f"a worker could not be started ({error.strerror})") from error
            _PIPED.add(self._process)
            self._reader = threading.Thread(target=self._read, args=(self._process, self._ready), daemon=True)
            self._reader.start()
        return self._process

    def _ended(self, run: str) -> Future[JobAnswer] | None:
        """Remove a job from those that wait; returns its future, if there is one. The caller holds the lock."""
        self._watching.pop(run, None)
        return self._waiting.pop(run, None)

    def _read(self, process: subprocess.Popen[bytes], ready: Future[WorkerReady]) -> None:
        """Resolve futures from the worker's output until that ends, then fail the remaining ones."""
        assert process.stdin is not None
        assert process.stdout is not None
        start_timer = threading.Timer(_START_S, process.kill)
        start_timer.daemon = True
        start_timer.start()
        try:
            for line in process.stdout:
                if not ready.done():
                    announced = WorkerReady.model_validate_json(line)
                    self.device = announced.device
                    start_timer.cancel()
                    ready.set_result(announced)
                    continue
                reply = REPLY.validate_json(line)
                if isinstance(reply, JobProgress):
                    self._watching.get(reply.run, ignore)(reply.step)
                    continue
                with self._lock:
                    waiting = self._ended(reply.run)
                if waiting is not None:
                    waiting.set_result(reply)
        except ValidationError:  # an incomplete line: the worker was killed while it wrote
            process.kill()
        kind = WorkerLost if ready.done() else WorkerAway
        lost = kind(f"a worker ended with status {process.wait()}")
        start_timer.cancel()
        process.stdout.close()
        with suppress(BrokenPipeError):
            process.stdin.close()
        with self._lock:
            waiting_for, self._waiting, self._watching = self._waiting, {}, {}
            self._lost = f"{lost} while it had {counted(len(waiting_for), 'job')}"
            if self._process is process:
                self._process = None
        if not ready.done():
            ready.set_exception(lost)
        for answer in waiting_for.values():
            answer.set_exception(lost)


_MAX_SLOTS = 16  # on a GPU: each needs half a gigabyte of its memory for a CUDA context, in addition to its tensors
# A process runs one Python thread at a time: a worker with sixteen slots used one processor while the others idled.
_CPUS_OF_A_WORKER, _MAX_WORKERS = 8, 4


def local_workers(
    root: Path,
    device: DeviceChoice,
    slots: int | None,
    environment: Mapping[str, str] = os.environ,
    devices: int | None = None,
) -> list[WorkerProcess]:
    """The workers for this machine's devices, not started yet: one for its CPU, or one or several for each GPU.

    `slots` is how many jobs each device grades at a time; None: this depends on the number of processors. `devices` is
    how many GPUs to use; None: all. A GPU has several workers if there are enough processors for them. A lock
    (`harness.judge.timing.device_lock`) keeps the others from using the GPU while one of them times.
    """
    gpus = visible_gpus()[:devices] if device != "cpu" and cuda_is_here() else []
    if not gpus:
        # A CPU grades one submission at a time: other tests would disturb its times.
        return [WorkerProcess(root, slots or 1, {**environment, "CUDA_VISIBLE_DEVICES": ""})]
    parts = divide([local_cpus(gpu.pci_address) for gpu in gpus])
    workers = []
    for gpu, cpus in zip(gpus, parts, strict=True):
        gpu_slots = slots or max(1, min(_MAX_SLOTS, len(cpus)))
        judges = max(1, min(gpu_slots, len(cpus) // _CPUS_OF_A_WORKER, _MAX_WORKERS))
        known = Path(tempfile.gettempdir(), f"kernelmark-known-{secrets.token_hex(8)}") if judges > 1 else None
        gpu_environment = {**environment, "CUDA_VISIBLE_DEVICES": gpu.uuid}
        for number, worker_cpus in enumerate(divide([set(cpus)] * judges)):
            share = gpu_slots // judges + (number < gpu_slots % judges)
            workers.append(WorkerProcess(root, share, gpu_environment, worker_cpus, judges=judges, known=known))
    return workers
