"""The leases that a worker holds, how far their gradings are, and how many more it may claim. Trusted; thread-safe."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from kernelmark.service.submissions import StageProgress
from kernelmark.service.work import HeldLease, Lease


@dataclass
class Held:
    """A lease that is held until its answer has been acknowledged, or the server has ended it."""

    lease: Lease
    progress: StageProgress | None = None
    is_graded: bool = False
    is_ended: bool = False
    """Whether the server does not want an answer any more."""


class Holding:
    """All leases of one start of a worker. `changed` is notified when one comes, ends or goes on."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self._held = dict[str, Held]()
        self._runs = set[str]()
        self.steps = 0
        """Grows with each change that a heartbeat should tell."""

    def take(self, lease: Lease) -> Held | None:
        """Hold a lease; None if it is held already."""
        with self.changed:
            if lease.lease in self._held:
                return None
            held = self._held[lease.lease] = Held(lease)
            return held

    def begin(self, held: Held) -> None:
        """Wait until no other lease of the same run is being graded, which was ended."""
        with self.changed:
            self.changed.wait_for(lambda: held.lease.task.run not in self._runs)
            self._runs.add(held.lease.task.run)

    def step(self, held: Held, progress: StageProgress) -> None:
        """Note how far a grading is."""
        with self.changed:
            held.progress = progress
            self.steps += 1
            self.changed.notify_all()

    def graded(self, held: Held) -> None:
        """A grading has ended, with or without an answer; a lease that the server has ended is held no longer."""
        with self.changed:
            held.is_graded = True
            self._runs.discard(held.lease.task.run)
            if held.is_ended:
                self._held.pop(held.lease.lease, None)
            self.changed.notify_all()

    def drop(self, lease: str) -> None:
        """Hold it no longer: its answer was acknowledged or refused."""
        with self.changed:
            self._held.pop(lease, None)
            self.changed.notify_all()

    def end(self, lease: str) -> str | None:
        """The server has ended a lease; returns its run if that is still being graded."""
        with self.changed:
            held = self._held.get(lease)
            if held is None or held.is_ended:
                return None
            held.is_ended = True  # even if only its answer is left to send: told of it, the server answers at once
            return None if held.is_graded else held.lease.task.run

    def all(self) -> tuple[HeldLease, ...]:
        """What a heartbeat says."""
        with self.changed:
            leases = [held for held in self._held.values() if not held.is_ended]
            return tuple(HeldLease(lease=held.lease.lease, progress=held.progress) for held in leases)

    @property
    def being_graded(self) -> int:
        """How many gradings have not ended; the caller may hold `changed`."""
        return sum(not held.is_graded for held in self._held.values())
