"""The order in which a pool's queued jobs are graded: start-time fair queueing between classes, then between owners.

Each class, and within a class each owner, has a virtual time. The one with the least is next, and its time grows by
what the job is expected to take, divided by its weight. One that comes back to a queue starts at the present time, so
nobody saves up. The owners of a class are equal; their oldest job is taken first. Pure; `leases` and `status` call it.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from kernelmark.service.submissions import JobClass

COST: Mapping[JobClass, int] = {"people": 1, "batch": 3, "regrade": 3}
"""What a class's time grows by for each nanosecond: people get three times as much as each of the others."""


class Head(NamedTuple):
    """The oldest queued grading of a class and a share."""

    job_class: JobClass
    share: str
    position: int


class Job(NamedTuple):
    """A queued grading."""

    job_class: JobClass
    share: str
    """Whose turn it takes: the owner, or `newcomers`."""
    position: int
    """Its place among its owner's jobs: an older one has a smaller number."""
    run: str
    expected_ns: int


@dataclass
class ClassTime:
    """The virtual times of a class."""

    virtual_ns: int = 0
    present_ns: int = 0
    """Of its owners: when the one chosen last started."""
    owners: dict[str, int] = field(default_factory=dict)
    """Without those who start at the present time."""

    def start_of(self, share: str) -> int:
        return max(self.owners.get(share, 0), self.present_ns)


@dataclass
class Shares:
    """The virtual times of one pool."""

    present_ns: int = 0
    people_next: bool = False
    """Whether the job chosen last was of another class than people's: if people wait, they are next."""
    classes: dict[JobClass, ClassTime] = field(default_factory=dict)

    def of(self, job_class: JobClass) -> ClassTime:
        return self.classes.setdefault(job_class, ClassTime())

    def start_of(self, job_class: JobClass) -> int:
        return max(self.of(job_class).virtual_ns, self.present_ns)

    def next_class(self, waiting: Collection[JobClass]) -> JobClass:
        """The class whose turn it is, of those that have a job.

        After a job of another class, people who wait are next: they wait for one such job at most.
        """
        if self.people_next and "people" in waiting:
            return "people"
        return min(waiting, key=lambda name: (self.start_of(name), name != "people", name))

    def take_class(self, job_class: JobClass, expected_ns: int, waiting: Iterable[JobClass]) -> None:
        start = self.start_of(job_class)
        self.present_ns = min(map(self.start_of, waiting))
        self.of(job_class).virtual_ns = start + expected_ns * COST[job_class]
        self.people_next = job_class != "people"


def choose(shares: Shares, heads: Iterable[Head]) -> Head | None:
    """The one that is next; None if there are none."""
    by_class: defaultdict[JobClass, list[Head]] = defaultdict(list)
    for head in heads:
        by_class[head.job_class].append(head)
    if not by_class:
        return None
    turn = shares.next_class(by_class)
    of_class = shares.of(turn)
    return min(by_class[turn], key=lambda job: (of_class.start_of(job.share), job.position))


def take(shares: Shares, head: Head, expected_ns: int, waiting: Iterable[JobClass]) -> None:
    """Let the times grow by a job that `choose` gave; `waiting` are the classes that had one then."""
    shares.take_class(head.job_class, expected_ns, waiting)
    of_class = shares.of(head.job_class)
    of_class.present_ns = start = of_class.start_of(head.share)
    of_class.owners[head.share] = start + expected_ns


def in_order(shares: Shares, jobs: Iterable[Job]) -> Iterator[Job]:
    """All jobs, in the order in which `choose` and `take` give them if no other comes."""
    queues = {name: iter(queue) for name, queue in _within_classes(shares, jobs).items()}
    ahead = Shares(shares.present_ns, shares.people_next)
    ahead.classes = {name: ClassTime(times.virtual_ns) for name, times in shares.classes.items()}
    heads = {name: next(queue) for name, queue in queues.items()}
    while heads:
        turn = ahead.next_class(heads)
        job = heads[turn]
        ahead.take_class(turn, job.expected_ns, heads)
        yield job
        following = next(queues[turn], None)
        if following is None:
            del heads[turn]
        else:
            heads[turn] = following


def _within_classes(shares: Shares, jobs: Iterable[Job]) -> dict[JobClass, list[Job]]:
    """The jobs of each class in order: each starts, in virtual time, where its owner's job before it has ended."""
    owned: defaultdict[tuple[JobClass, str], list[Job]] = defaultdict(list)
    for job in jobs:
        owned[job.job_class, job.share].append(job)
    starts: defaultdict[JobClass, list[tuple[int, int, Job]]] = defaultdict(list)
    for (job_class, share), mine in owned.items():
        start = shares.of(job_class).start_of(share)
        for job in sorted(mine, key=lambda job: job.position):
            starts[job_class].append((start, job.position, job))
            start += job.expected_ns
    return {name: [job for *_, job in sorted(timed)] for name, timed in starts.items()}


def ends(expected_ns: Iterable[int], busy_ns: Iterable[int], devices: int) -> Iterator[int]:
    """In how many nanoseconds each of these jobs ends, in this order, if each goes to the device that is free first.

    `busy_ns` is how long those that are leased still take; there is at least one device.
    """
    free = [0] * devices
    for busy in busy_ns:
        heapq.heapreplace(free, free[0] + busy)
    for expected in expected_ns:
        end = free[0] + expected
        heapq.heapreplace(free, end)
        yield end
