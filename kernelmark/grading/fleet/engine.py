"""What a dispatcher needs of workers, wherever they are; a kind of fleet is a module that makes them."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Protocol

from kernelmark.grading.fleet.messages import JobAnswer, JobRequest

AHEAD = 4
"""How many jobs a worker has beyond those that it works on: their sandboxes start meanwhile."""


class WorkerLost(Exception):
    """A worker ended, or its machine was lost, before it answered."""


class WorkerHandle(Protocol):
    """One device's judge, from the dispatcher's side."""

    slots: int
    """How many jobs it works on at a time."""

    def start(self) -> None:
        """Begin to start it, if it is not there."""
        ...

    def device(self) -> str:
        """The name of its device; waits until it is up.

        Raises:
            HarnessError: it did not start.
        """
        ...

    def submit(self, request: JobRequest) -> Future[JobAnswer]:
        """Hand over a job. The future raises `WorkerLost` if the worker is lost before it answers; a later job finds
        it started again.
        """
        ...

    def close(self) -> None: ...
