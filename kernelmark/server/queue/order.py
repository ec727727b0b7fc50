"""The order in which a pool's queued jobs are graded: start-time fair queueing between classes, then between owners.

Each class, and within a class each owner, has a virtual time. The one with the least is next, and its time grows by
what the job is expected to take, divided by its weight. One that comes back to a queue starts at the present time, so
nobody saves up. The owners of a class are equal; the oldest job of each is its first. The jobs of one owner in one
class are a flow, as the literature calls it. Pure; `leases` and `status` call it.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from kernelmark.service.submissions import JobClass

INVERSE_WEIGHT: Mapping[JobClass, int] = {"people": 1, "batch": 3, "regrade": 3}
"""How much faster the virtual time of a class grows: people get three times as much as each of the others."""


class FlowHead(NamedTuple):
    """The first job of a flow: the oldest that is queued."""

    job_class: JobClass
    share: str
    position: int


class QueuedJob(NamedTuple):
    """A queued grading."""

    job_class: JobClass
    share: str
    """Who is charged for it: the owner, or `newcomers`."""
    position: int
    """An older job of the flow has a smaller number."""
    run: str
    expected_ns: int


@dataclass
class ClassTimes:
    """The virtual times of a class."""

    virtual_ns: int = 0
    present_ns: int = 0
    """Where the job that was chosen last started, in the virtual time of the owners."""
    owners: dict[str, int] = field(default_factory=dict)
    """Where the next job of each starts. Owners who start at the present time may be missing."""

    def start_of(self, share: str) -> int:
        return max(self.owners.get(share, 0), self.present_ns)


@dataclass
class VirtualTimes:
    """The virtual times of one pool."""

    present_ns: int = 0
    people_next: bool = False
    """Whether the job that was chosen last was of another class: then people come next, if any wait."""
    classes: dict[JobClass, ClassTimes] = field(default_factory=dict)

    def of_class(self, job_class: JobClass) -> ClassTimes:
        return self.classes.setdefault(job_class, ClassTimes())

    def start_of(self, job_class: JobClass) -> int:
        return max(self.of_class(job_class).virtual_ns, self.present_ns)

    def next_class(self, waiting: Collection[JobClass]) -> JobClass:
        """The class that is next, of those that have a job. People wait for at most one job of another class."""
        if self.people_next and "people" in waiting:
            return "people"
        return min(waiting, key=lambda name: (self.start_of(name), name != "people", name))

    def charge_class(self, job_class: JobClass, expected_ns: int, waiting: Iterable[JobClass]) -> None:
        start = self.start_of(job_class)
        self.present_ns = min(map(self.start_of, waiting))
        self.of_class(job_class).virtual_ns = start + expected_ns * INVERSE_WEIGHT[job_class]
        self.people_next = job_class != "people"


def choose(times: VirtualTimes, heads: Iterable[FlowHead]) -> FlowHead | None:
    """The job that is next, of the first ones of all flows; None if there are none."""
    by_class: defaultdict[JobClass, list[FlowHead]] = defaultdict(list)
    for head in heads:
        by_class[head.job_class].append(head)
    if not by_class:
        return None
    turn = times.next_class(by_class)
    of_class = times.of_class(turn)
    return min(by_class[turn], key=lambda job: (of_class.start_of(job.share), job.position))


def charge(times: VirtualTimes, head: FlowHead, expected_ns: int, waiting: Iterable[JobClass]) -> None:
    """Charge a job that `choose` gave to its class and share; `waiting` are the classes that had a job then."""
    times.charge_class(head.job_class, expected_ns, waiting)
    of_class = times.of_class(head.job_class)
    of_class.present_ns = start = of_class.start_of(head.share)
    of_class.owners[head.share] = start + expected_ns


def predicted_order(times: VirtualTimes, jobs: Iterable[QueuedJob]) -> Iterator[QueuedJob]:
    """All jobs, in the order in which they will be chosen if no other job comes."""
    queues = {name: iter(queue) for name, queue in _within_classes(times, jobs).items()}
    ahead = VirtualTimes(times.present_ns, times.people_next)
    ahead.classes = {name: ClassTimes(of_class.virtual_ns) for name, of_class in times.classes.items()}
    heads = {name: next(queue) for name, queue in queues.items()}
    while heads:
        turn = ahead.next_class(heads)
        job = heads[turn]
        ahead.charge_class(turn, job.expected_ns, heads)
        yield job
        following = next(queues[turn], None)
        if following is None:
            del heads[turn]
        else:
            heads[turn] = following


def _within_classes(times: VirtualTimes, jobs: Iterable[QueuedJob]) -> dict[JobClass, list[QueuedJob]]:
    """The jobs of each class in order: each starts, in virtual time, where its owner's job before it has ended."""
    owned: defaultdict[tuple[JobClass, str], list[QueuedJob]] = defaultdict(list)
    for job in jobs:
        owned[job.job_class, job.share].append(job)
    starts: defaultdict[JobClass, list[tuple[int, int, QueuedJob]]] = defaultdict(list)
    for (job_class, share), mine in owned.items():
        start = times.of_class(job_class).start_of(share)
        for job in sorted(mine, key=lambda job: job.position):
            starts[job_class].append((start, job.position, job))
            start += job.expected_ns
    return {name: [job for *_, job in sorted(timed)] for name, timed in starts.items()}


def finish_times(expected_ns: Iterable[int], busy_ns: Iterable[int], devices: int) -> Iterator[int]:
    """In how many nanoseconds each of these jobs ends if it goes, in this order, to the device that is free first.

    Args:
        busy_ns: how long each job that is leased still takes.
        devices: how many there are; at least one.
    """
    free = [0] * devices
    for busy in busy_ns:
        heapq.heapreplace(free, free[0] + busy)
    for expected in expected_ns:
        end = free[0] + expected
        heapq.heapreplace(free, end)
        yield end
