"""Which worker of a fleet gets the next job. Trusted."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future

from harness.errors import HarnessError, UsageError
from kernelmark.grading.fleet.messages import AHEAD, JobAnswer, JobRequest, WorkerHandle

_NONE_S = 600.0  # how long a job waits while no worker is there


class WorkerPool:
    """The workers that are up, with their loads; shared by all calls of a fleet, in any thread."""

    def __init__(self, workers: Sequence[WorkerHandle] = ()) -> None:
        self._workers, self._lock = list(workers), threading.Condition()
        self._load = dict.fromkeys(range(len(workers)), 0)
        self._there = set(self._load)
        self._devices: list[str] = []
        self._runs: set[str] = set()
        self._done: Counter[str] = Counter()
        self._closed = False

    @property
    def capacity(self) -> int:
        """How many jobs all workers together can have at a time, those included whose sandboxes only start."""
        with self._lock:
            return sum(self._workers[index].slots + AHEAD for index in self._there)

    def start(self) -> None:
        """Start the workers and wait until all are up. Does nothing if they are.

        Raises:
            UsageError: they have been closed.
            HarnessError: one did not start.
        """
        if self._closed:
            raise UsageError("Fleet", "is closed", "grade inside its `with` block, or make another one")
        if not self._devices:
            for worker in self._workers:
                worker.start()
            # Asked only now: a worker that is lost later may be starting again when its device's name is needed.
            self._devices = [worker.device() for worker in self._workers]

    def add(self, worker: WorkerHandle) -> None:
        """Give jobs to this worker, too, which is up: a new one, or one that was removed."""
        with self._lock:
            if worker not in self._workers:
                self._load[len(self._workers)] = 0
                self._workers.append(worker)
                self._devices.append("")
            index = self._workers.index(worker)
            self._devices[index] = worker.device()
            self._there.add(index)
            self._lock.notify_all()

    def remove(self, worker: WorkerHandle) -> None:
        """Give it no more jobs; those that it has still end."""
        with self._lock:
            self._there.discard(self._workers.index(worker))

    def close(self) -> None:
        """End the workers; jobs that they have, and later ones, fail."""
        with self._lock:
            self._closed = True
            self._lock.notify_all()
        for worker in self._workers:
            worker.close()

    def hand_over(self, request: JobRequest, ended: Callable[[Future[JobAnswer], str], None]) -> None:
        """Give a job to the worker with the most room; `ended` gets what became of it, and its device's name.

        Waits while all workers are lost.

        Raises:
            UsageError: a job with the same run id is being graded.
            HarnessError: the workers have been closed, or were lost and did not come back for ten minutes.
        """
        with self._lock:
            if not self._lock.wait_for(lambda: self._there or self._closed, _NONE_S):
                raise HarnessError("all workers of the fleet are lost", "`kernelmark fleet status` shows its machines")
            if self._closed:
                raise HarnessError("the fleet was closed")
            if request.run in self._runs:
                raise UsageError("run", f"another job with the id {request.run} is being graded", "give each its own")
            self._runs.add(request.run)
            index = min(self._there, key=lambda number: self._load[number] / self._workers[number].slots)
            self._load[index] += 1

        def left(answer: Future[JobAnswer]) -> None:
            with self._lock:
                self._runs.remove(request.run)
                self._load[index] -= 1
                if not answer.cancelled() and answer.exception() is None:
                    self._done[self._devices[index]] += 1
            ended(answer, self._devices[index])

        self._workers[index].submit(request).add_done_callback(left)

    def counts(self) -> tuple[int, int, dict[str, int]]:
        """Jobs done, jobs in flight, and jobs done by device."""
        with self._lock:
            return self._done.total(), sum(self._load.values()), dict(self._done)
