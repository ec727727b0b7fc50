"""The order of the queue: fair between classes and owners, and the same whether it is asked for one job or for all."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

from hypothesis import given, settings
from hypothesis import strategies as st

from kernelmark.server.queue.order import (
    FlowHead,
    QueuedJob,
    VirtualTimes,
    charge,
    choose,
    finish_times,
    predicted_order,
)
from kernelmark.service.submissions import JobClass

_FIXED = settings(max_examples=60, derandomize=True, deadline=None)
_CLASSES: tuple[JobClass, ...] = ("people", "batch", "regrade")
_QUEUES = st.lists(
    st.tuples(st.sampled_from(_CLASSES), st.sampled_from("abcd"), st.integers(1, 50)), min_size=1, max_size=40
)


def jobs_of(drawn: Iterable[tuple[JobClass, str, int]]) -> list[QueuedJob]:
    return [QueuedJob(name, owner, at, f"run{at}", cost) for at, (name, owner, cost) in enumerate(drawn)]


def claimed(times: VirtualTimes, waiting: list[QueuedJob], number: int) -> list[QueuedJob]:
    """What this many claims give, one after the other."""
    taken = list[QueuedJob]()
    while waiting and len(taken) < number:
        heads: dict[tuple[JobClass, str], QueuedJob] = {}
        for job in sorted(waiting, key=lambda job: -job.position):
            heads[job.job_class, job.share] = job
        head = choose(times, (FlowHead(job.job_class, job.share, job.position) for job in heads.values()))
        assert head is not None
        job = heads[head.job_class, head.share]
        charge(times, head, job.expected_ns, {other.job_class for other in heads.values()})
        waiting.remove(job)
        taken.append(job)
    return taken


@_FIXED
@given(_QUEUES, st.integers(0, 20))
def test_the_places_that_are_told_are_those_in_which_jobs_are_claimed(
    drawn: list[tuple[JobClass, str, int]], before: int
) -> None:
    times, waiting = VirtualTimes(), jobs_of(drawn)
    claimed(times, waiting, before)
    told = [job.run for job in predicted_order(times, waiting)]
    assert told == [job.run for job in claimed(times, waiting, len(waiting))]


@_FIXED
@given(_QUEUES)
def test_an_owners_jobs_keep_their_order_and_all_are_taken(drawn: list[tuple[JobClass, str, int]]) -> None:
    order = [*predicted_order(VirtualTimes(), jobs_of(drawn))]
    assert len(order) == len(drawn)
    by_owner = defaultdict(list)
    for job in order:
        by_owner[job.job_class, job.share].append(job.position)
    assert all(positions == sorted(positions) for positions in by_owner.values())


@_FIXED
@given(st.lists(st.integers(1, 50), min_size=60, max_size=60), st.integers(2, 6))
def test_equal_owners_differ_by_one_job_at_most(costs: list[int], owners: int) -> None:
    waiting = [QueuedJob("people", str(at % owners), at, str(at), cost) for at, cost in enumerate(costs)]
    used = Counter[str]()
    for job in claimed(VirtualTimes(), waiting, len(waiting) - owners * 12):
        used[job.share] += job.expected_ns
        assert max(used.values()) - min(used[str(owner)] for owner in range(owners)) <= 50


def test_with_work_for_both_batches_get_a_quarter() -> None:
    waiting = [QueuedJob(name, "ada", at, f"{name}{at}", 10) for name in ("people", "batch") for at in range(400)]
    first = Counter(job.job_class for job in claimed(VirtualTimes(), waiting, 400))
    assert first == {"people": 300, "batch": 100}


@_FIXED
@given(st.lists(st.tuples(st.booleans(), st.integers(1, 100), st.integers(1, 100)), min_size=1, max_size=60))
def test_a_person_waits_for_one_other_job_at_most(steps: list[tuple[bool, int, int]]) -> None:
    """However much people used before, and however long the queue of a batch is."""
    times = VirtualTimes()
    waiting = [QueuedJob("batch", "rl", at, f"batch{at}", steps[at % len(steps)][1]) for at in range(200)]
    waiting += [QueuedJob("regrade", "organizers", at, f"regrade{at}", 7) for at in range(200)]
    for number, (comes, _, cost) in enumerate(steps):
        if comes:
            waiting.append(QueuedJob("people", f"p{number % 3}", 1000 + number, f"person{number}", cost))
        two = claimed(times, waiting, 2)
        if any(job.job_class == "people" for job in (*waiting, *two)):
            assert any(job.job_class == "people" for job in two)


def test_one_job_behind_ten_thousand_of_a_batch_is_the_second_claim_at_most() -> None:
    times = VirtualTimes()
    heads = [FlowHead("batch", f"rl{owner}", owner) for owner in range(300)]
    for _ in range(50):
        head = choose(times, heads)
        assert head is not None
        charge(times, head, 1000, {"batch"})
    heads.append(FlowHead("people", "ada", 10_000))
    two = []
    for _ in range(2):
        head = choose(times, heads)
        assert head is not None
        charge(times, head, 1000, {"batch", "people"})
        two.append(head.share)
    assert "ada" in two


def test_nobody_saves_up() -> None:
    """An owner who comes back after a while gets no more than the others from then on."""
    times, waiting = VirtualTimes(), [QueuedJob("people", "busy", at, f"busy{at}", 10) for at in range(100)]
    claimed(times, waiting, 50)
    waiting += [QueuedJob("people", "back", 100 + at, f"back{at}", 10) for at in range(50)]
    assert Counter(job.share for job in claimed(times, waiting, 20)) == {"busy": 10, "back": 10}


def test_fifty_claims_of_equal_owners_are_shared_evenly() -> None:
    waiting = [QueuedJob("people", str(at % 10), at, str(at), 10) for at in range(500)]
    taken = claimed(VirtualTimes(), waiting, 200)
    for begin in range(150):
        numbers = Counter(job.share for job in taken[begin : begin + 50])
        values = [numbers[str(owner)] for owner in range(10)]
        assert sum(values) ** 2 / (10 * sum(value * value for value in values)) >= 0.95  # Jain's index


def test_when_a_job_ends_depends_on_how_many_devices_there_are() -> None:
    assert [*finish_times([10, 10, 10], [5], 1)] == [15, 25, 35]
    assert [*finish_times([10, 10, 10], [5], 2)] == [10, 15, 20]
