"""Decides which worker of a fleet gets the next job. Trusted."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass

from harness.errors import HarnessError, UsageError
from harness.judge.setup import ignore
from harness.kinds import DeviceKind
from kernelmark.grading.fleet.messages import AHEAD, JobAnswer, JobRequest, OnStep, WorkerHandle

_NO_WORKER_S = 600.0  # how long a job waits while there is no worker


@dataclass(frozen=True)
class Devices:
    """The devices of a pool."""

    names: frozenset[str]
    kind: DeviceKind
    count: int
    slots: int
    """How many jobs they grade at a time, without those whose sandboxes are still starting."""


class WorkerPool:
    """The workers of a fleet. All its calls share the pool, in any thread."""

    def __init__(self, workers: Sequence[WorkerHandle] = ()) -> None:
        self._workers, self._lock = list(workers), threading.Condition()
        self._runs: dict[str, WorkerHandle] = {}
        self._reserved: list[WorkerHandle] = []
        self._done: Counter[str] = Counter()
        self._cancelled: set[str] = set()
        self.lost, self.retried = 0, 0
        self._closed = False

    @property
    def capacity(self) -> int:
        """How many jobs all workers accept at a time, including those whose sandboxes are still starting."""
        with self._lock:
            return sum(worker.slots + AHEAD for worker in self._workers)

    @property
    def devices(self) -> Devices | None:
        """The devices of the current workers; None while all workers are lost."""
        with self._lock:
            workers = list(self._workers)
        if not workers:
            return None
        gpus = {worker.gpu for worker in workers if worker.gpu}
        names = frozenset(worker.device for worker in workers)
        return Devices(names, "cuda" if gpus else "cpu", len(gpus or workers), sum(worker.slots for worker in workers))

    def add(self, worker: WorkerHandle) -> None:
        """Add a worker that has started."""
        with self._lock:
            self._workers.append(worker)
            self._lock.notify_all()

    def remove(self, worker: WorkerHandle) -> None:
        """Send a worker no more jobs; it finishes those that it has."""
        with self._lock:
            self._workers = [other for other in self._workers if other is not worker]
            self._lock.notify_all()

    def close(self) -> None:
        """Accept no more jobs."""
        with self._lock:
            self._closed = True
            self._lock.notify_all()

    def hand_over(
        self,
        request: JobRequest,
        ended: Callable[[Future[JobAnswer], str], None],
        on_step: OnStep = ignore,
        *,
        again: bool = False,
        alone: bool = False,
    ) -> None:
        """Send a job to the worker with the most room. While all workers are lost, this waits.

        Args:
            ended: called with the answer and the name of the worker's device.
            on_step: as for `WorkerHandle.submit`.
            again: whether this is another attempt, as an earlier worker was lost.
            alone: wait until the worker has no other job, and send it none until this one has ended.

        Raises:
            UsageError: a job with the same run id is being graded.
            HarnessError: the pool was closed, or there was no worker for ten minutes.
        """
        with self._lock:
            worker = self._choose(request, alone)
            self._runs[request.run] = worker
            self.retried += again

        def finish(answer: Future[JobAnswer]) -> None:
            with self._lock:
                del self._runs[request.run]
                if alone:
                    self._reserved.remove(worker)
                self._lock.notify_all()
                if request.run in self._cancelled:
                    self._cancelled.remove(request.run)
                elif answer.cancelled() or answer.exception() is not None:
                    self.lost += 1
                else:
                    self._done[worker.device] += 1
            ended(answer, worker.device)

        worker.submit(request, on_step).add_done_callback(finish)

    def _choose(self, request: JobRequest, alone: bool) -> WorkerHandle:
        """Wait for a worker for this job; raises as `hand_over`. The caller holds the lock."""
        while True:
            if not self._lock.wait_for(lambda: self._workers or self._closed, _NO_WORKER_S):
                raise HarnessError("all workers of the fleet are lost", "`kernelmark fleet status` shows its machines")
            if self._closed:
                raise HarnessError("the fleet was closed")
            if request.run in self._runs:
                raise UsageError("run", f"another job with the id {request.run} is being graded", "give each its own")
            available = [worker for worker in self._workers if worker not in self._reserved]
            if not available:
                self._lock.wait()
                continue
            worker = min(available, key=lambda candidate: self._load(candidate) / candidate.slots)
            if not alone:
                return worker
            self._reserved.append(worker)
            while not self._closed and self._load(worker) and worker in self._workers:
                self._lock.wait()
            if not self._closed and worker in self._workers:
                return worker
            self._reserved.remove(worker)

    def _load(self, worker: WorkerHandle) -> int:
        return sum(other is worker for other in self._runs.values())

    def cancel(self, run: str) -> None:
        """End a job that nobody waits for; it counts neither as done nor as lost."""
        with self._lock:
            worker = self._runs.get(run)
            if worker is None:
                return
            self._cancelled.add(run)
        worker.cancel(run)

    def counts(self) -> tuple[int, int, dict[str, int]]:
        """Jobs done, jobs in flight, and jobs done by device."""
        with self._lock:
            return self._done.total(), len(self._runs), dict(self._done)
