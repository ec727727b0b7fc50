"""Leases: who gets what, until when, and who pays when one ends. Each attack has an honest twin."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.problem import Problem
from harness.submission import Submission
from kernelmark.server.database.tables import pins, workers
from kernelmark.server.queue import endings
from kernelmark.server.queue import workers as queue_workers
from kernelmark.server.queue.leases import restart_timers
from kernelmark.server.queue.sweeper import Sweeper
from kernelmark.server.queue.virtual_times import forget_idle
from kernelmark.server.service import Service
from kernelmark.service.refusal import Refusal
from kernelmark.service.work import LEASE_S, ProblemHashes
from tests.service_fixtures import FakeClock, make_principal
from tests.unit.service.queue.queueing import (
    Worker,
    change,
    request,
    row,
    secret,
    state,
    status_of,
    submit,
)


@pytest.fixture
def worker(service: Service) -> Worker:
    made = Worker(service)
    made.hello()
    return made


def sweep(service: Service) -> None:
    Sweeper(service).sweep()


def refused(code: str, status: int) -> Any:
    return pytest.raises(Refusal, check=lambda error: (error.code, error.status) == (code, status))


def test_a_submission_is_claimed_graded_and_shown_at_the_next_multiple_of_five_seconds(
    service: Service, worker: Worker, clock: FakeClock
) -> None:
    clock.pass_s(1)
    run = submit(service, make_principal(service))
    assert (status_of(service, run).state, status_of(service, run).before) == ("queued", 0)
    (lease,) = worker.claim()
    assert (lease.task.run, lease.task.author, lease.task.alone) == (run, "ada", False)
    worker.progress(lease)
    shown = status_of(service, run)
    assert shown.progress is not None
    assert worker.accept(lease) == run
    assert status_of(service, run) == shown  # nothing tells when the hidden tests ended
    clock.pass_s(4)
    after = status_of(service, run)
    assert (after.state, after.outcome, after.score_s) == ("graded", "accepted", 1e-6)
    assert after.version > shown.version


def test_a_check_without_hidden_tests_is_shown_at_once(service: Service, worker: Worker, clock: FakeClock) -> None:
    clock.pass_s(1)
    run = submit(service, make_principal(service), request(mode="check"))
    worker.accept(worker.claim()[0])
    assert status_of(service, run).state == "done"


def test_the_same_claim_gets_the_same_leases_and_another_one_others(service: Service) -> None:
    ada, worker = make_principal(service), Worker(service, slots=3)
    worker.hello()
    for _ in range(4):
        submit(service, ada)
    first = worker.claim(2, claim=secret("a"))
    assert worker.claim(2, claim=secret("a")) == first
    assert {lease.lease for lease in worker.claim(2, claim=secret("b"))}.isdisjoint(lease.lease for lease in first)


def test_a_worker_gets_one_more_than_it_has_slots(service: Service, worker: Worker) -> None:
    ada = make_principal(service)
    for _ in range(5):
        submit(service, ada)
    assert len(worker.claim(4096)) == 2
    assert worker.claim(4096) == []


def test_the_one_more_is_left_to_a_worker_that_is_idle_and_could_grade_it(service: Service, worker: Worker) -> None:
    ada, idle = make_principal(service), Worker(service, "gpu2")
    idle.hello(problems={})
    for _ in range(3):
        submit(service, ada)
    assert len(worker.claim(1)) == 1
    idle.hello()
    assert worker.claim(2) == []
    assert len(idle.claim(1)) == 1
    assert len(worker.claim(2)) == 1


def test_what_a_worker_does_not_list_goes_back_at_once_without_a_try(
    service: Service, worker: Worker, clock: FakeClock
) -> None:
    ada = make_principal(service)
    first, second = submit(service, ada), submit(service, ada)
    worker.claim()
    worker.beat(forget=True)
    assert state(service, first) == "leased"  # the answer to its claim may be under way
    clock.pass_s(6)
    worker.beat()
    assert state(service, first) == "leased"  # listed
    worker.beat(forget=True)
    assert (state(service, first), row(service, first).tries) == ("queued", 0)
    assert worker.claim()[0].task.run == first  # at the head of the queue
    assert state(service, second) == "queued"


def test_a_lease_runs_out_unless_it_is_renewed(service: Service, worker: Worker, clock: FakeClock) -> None:
    run = submit(service, make_principal(service))
    (lease,) = worker.claim()
    for _ in range(4):
        clock.pass_s(LEASE_S / 2)
        worker.progress(lease, done=int(clock.monotonic // 10**9))
        sweep(service)
        assert state(service, run) == "leased"
    clock.pass_s(LEASE_S)
    sweep(service)
    assert (state(service, run), row(service, run).tries) == ("queued", 0)
    assert worker.beat().end == (lease.lease,)


def test_a_lease_is_not_renewed_while_nothing_happens(service: Service, worker: Worker, clock: FakeClock) -> None:
    """A worker whose grading hangs says forever that it holds it."""
    run = submit(service, make_principal(service))
    (lease,) = worker.claim()
    worker.progress(lease)
    passed = 0
    while state(service, run) == "leased" and passed < 3600:
        clock.pass_s(15)
        passed += 15
        worker.beat()
        sweep(service)
    assert state(service, run) == "queued"
    assert passed < 600


def test_a_lease_has_a_hard_end(service: Service, worker: Worker, clock: FakeClock) -> None:
    """A worker that invents progress does not hold a job for ever."""
    run = submit(service, make_principal(service))
    (lease,) = worker.claim()
    passed = 0
    while state(service, run) == "leased" and passed < 7200:
        passed += 15
        clock.pass_s(15)
        worker.progress(lease, done=passed)
        sweep(service)
    assert state(service, run) == "queued"
    assert 300 < passed < 900  # more than the limits of the problem, and about twice them


def test_an_answer_counts_until_its_grading_is_leased_again(service: Service, worker: Worker, clock: FakeClock) -> None:
    run = submit(service, make_principal(service))
    (late,) = worker.claim()
    clock.pass_s(LEASE_S + 1)
    sweep(service)
    other = Worker(service, "gpu2")
    other.hello()
    (again,) = other.claim()
    with refused("lease-ended", 409):
        worker.accept(late)
    assert state(service, run) == "leased"
    with refused("lease-ended", 409):  # of another worker
        worker.accept(again)
    assert other.accept(again) == run
    with refused("lease-ended", 409):
        worker.accept(late)


def test_a_late_answer_of_what_is_queued_again_counts(service: Service, worker: Worker, clock: FakeClock) -> None:
    run = submit(service, make_principal(service))
    (late,) = worker.claim()
    clock.pass_s(LEASE_S + 1)
    sweep(service)
    assert worker.accept(late) == run
    assert state(service, run) == "graded"
    answered = service.database.write(lambda c: endings.find_answered(c, worker.name, late.lease)).result()
    assert answered.state == "graded"  # the same answer again is recognized by its lease


def test_a_second_live_instance_of_a_name_is_refused_and_the_next_start_gets_the_work(
    service: Service, worker: Worker, clock: FakeClock
) -> None:
    run = submit(service, make_principal(service))
    worker.claim()
    twin = Worker(service, worker.name)
    with refused("second-worker", 409):
        twin.hello()
    worker.beat()
    clock.pass_s(60)  # the first has ended
    twin.hello()
    assert twin.claim()[0].task.run == run
    assert row(service, run).tries == 0
    with refused("hello-first", 409):
        worker.beat()


def test_a_local_worker_that_has_ended_is_followed_at_once(service: Service, worker: Worker) -> None:
    run = submit(service, make_principal(service))
    worker.claim()
    change(service, lambda c: queue_workers.forget_instance(c, service, worker.name))
    assert state(service, run) == "queued"
    Worker(service, worker.name).hello()


def test_all_leases_begin_anew_when_the_server_starts(service: Service, worker: Worker, clock: FakeClock) -> None:
    run = submit(service, make_principal(service))
    (lease,) = worker.claim()
    clock.monotonic += 10**15  # another boot has another monotonic clock
    change(service, lambda c: restart_timers(c, service))
    sweep(service)
    assert state(service, run) == "leased"
    worker.beat()
    assert worker.accept(lease) == run


def test_after_a_restart_a_worker_may_first_claim_what_it_has_failed_to_grade(service: Service, worker: Worker) -> None:
    run = submit(service, make_principal(service))
    worker.error(worker.claim()[0])
    change(service, lambda connection: restart_timers(connection, service))
    assert [lease.task.run for lease in worker.claim()] == [run]


def test_a_judge_that_ended_costs_a_try_and_the_next_is_alone(service: Service, worker: Worker) -> None:
    run = submit(service, make_principal(service))
    for tries in range(3):
        (lease,) = worker.claim()
        assert lease.task.alone == (tries > 0)
        worker.error(lease, "judge-lost")
    assert (state(service, run), row(service, run).tries) == ("failed", 2)
    shown = status_of(service, run)
    assert "DeviceError" in shown.error
    assert "the device failed" not in shown.error  # participants see the class, organizers the text


def test_harness_errors_on_two_workers_end_it_and_the_second_try_goes_elsewhere(
    service: Service, worker: Worker
) -> None:
    other = Worker(service, "gpu2")
    other.hello()
    run = submit(service, make_principal(service))
    worker.error(worker.claim()[0])
    assert worker.claim() == []
    other.error(other.claim()[0])
    assert state(service, run) == "failed"
    assert not row(service, run).charged


def test_one_worker_alone_gets_it_three_times(service: Service, worker: Worker) -> None:
    run = submit(service, make_principal(service))
    for _ in range(3):
        assert state(service, run) == "queued"
        worker.error(worker.claim()[0])
    assert state(service, run) == "failed"


def test_the_same_error_again_changes_nothing(service: Service, worker: Worker) -> None:
    run = submit(service, make_principal(service))
    (lease,) = worker.claim()
    for _ in range(3):
        worker.error(lease)
    assert (state(service, run), json.loads(row(service, run).workers_failed)) == ("queued", ["gpu1"])


def test_what_a_worker_cannot_grade_costs_nothing_and_comes_back_when_it_has_changed(
    service: Service, worker: Worker
) -> None:
    run = submit(service, make_principal(service))
    worker.error(worker.claim()[0], "worker")
    assert worker.claim() == []
    assert (row(service, run).tries, status_of(service, run).waits_for) == (
        0, "no worker could grade this version of twice",
    )  # fmt: skip
    worker.hello()  # which it says again once its settings are valid, or its problems have changed
    assert worker.claim()[0].task.run == run


def test_a_job_has_five_leases_at_most(service: Service, worker: Worker, clock: FakeClock) -> None:
    run = submit(service, make_principal(service))
    for _ in range(5):
        assert state(service, run) == "queued"
        (lease,) = worker.claim()
        clock.pass_s(LEASE_S + 1)
        sweep(service)
    assert state(service, run) == "failed"
    assert worker.accept(lease) == run  # the last lease's answer counts for a failed one
    assert state(service, run) == "graded"


def test_a_worker_is_paused_after_three_owners_and_its_known_kernel_only(service: Service, worker: Worker) -> None:
    for name in ("ada", "ada", "bob"):
        fails_for(service, worker, name)
        assert worker.hello(unfit="the kernel failed") == ""  # one or two owners' kernels break what they touch
    fails_for(service, worker, "eve")
    assert worker.hello() == ""  # its known kernel is graded
    paused = worker.hello(unfit="the device is lost")
    assert paused.endswith("the device is lost")
    submit(service, make_principal(service, "dan"))
    assert worker.claim() == []
    assert worker.beat().paused == paused
    change(service, lambda c: queue_workers.resume(c, service, worker.name))
    assert worker.claim() != []


def test_a_success_in_between_clears_a_worker(service: Service, worker: Worker) -> None:
    for name in ("ada", "bob"):
        fails_for(service, worker, name)
    submit(service, make_principal(service, "eve"))
    worker.accept(worker.claim()[0])
    assert change(service, lambda c: c.execute(workers.select()).one()).faults == "[]"


def test_cancelled_while_queued_is_free_and_later_costs_what_it_used(
    service: Service, worker: Worker, clock: FakeClock
) -> None:
    ada = make_principal(service)
    free, used = submit(service, ada), submit(service, ada)
    change(service, lambda c: endings.cancel(c, service, free, ada))
    assert (row(service, free).charged, row(service, free).device_ns) == (False, 0)
    (lease,) = worker.claim()
    worker.progress(lease)
    clock.pass_s(7)
    change(service, lambda c: endings.cancel(c, service, used, ada))
    change(service, lambda c: endings.cancel(c, service, used, ada))  # again
    assert (row(service, used).charged, row(service, used).device_ns) == (True, 7 * 10**9)
    assert worker.beat().end == (lease.lease,)
    with refused("lease-ended", 409):
        worker.accept(lease)


@pytest.mark.parametrize(
    ("fault", "charged"),
    [
        pytest.param("judge-lost", True, id="its judge ended"),
        pytest.param("harness", True, id="a harness error"),
        pytest.param("worker", False, id="a worker that could not grade it"),
        pytest.param(None, False, id="a worker that was started anew"),
    ],
)
def test_cancelled_while_queued_again_counts_if_it_was_tried(
    fault: str | None, charged: bool, service: Service, worker: Worker
) -> None:
    ada = make_principal(service)
    run = submit(service, ada)
    (lease,) = worker.claim()
    if fault is None:
        change(service, lambda c: endings.requeue_all(c, service, worker.name))
    else:
        worker.error(lease, fault)
    assert state(service, run) == "queued"
    change(service, lambda c: endings.cancel(c, service, run, ada))
    assert (row(service, run).state, row(service, run).charged) == ("cancelled", charged)


def test_only_ones_own_are_cancelled(service: Service, worker: Worker) -> None:
    ada, bob = make_principal(service, "ada", team="quick"), make_principal(service, "bob", team="quick")
    run, eve = submit(service, ada), make_principal(service, "eve")
    with refused("no-such-run", 404):
        change(service, lambda c: endings.cancel(c, service, run, eve))
    change(service, lambda c: endings.cancel(c, service, run, bob))
    assert state(service, run) == "cancelled"
    done = submit(service, ada)
    worker.accept(worker.claim()[0])
    service.clock.pass_s(5)  # type: ignore[attr-defined]  # until its end is shown
    with refused("run-ended", 409):
        change(service, lambda c: endings.cancel(c, service, done, ada))


def test_cancelling_tells_nobody_whether_a_hidden_end_was(service: Service, worker: Worker, clock: FakeClock) -> None:
    clock.now = -(-clock.now // (5 * 10**9)) * 5 * 10**9 + 10**9
    ada, shown = make_principal(service), list[object]()
    for ended in (True, False):
        asked = request()
        run = submit(service, ada, asked)
        (lease,) = worker.claim()
        worker.progress(lease)
        if ended:
            worker.accept(lease)
        before = status_of(service, run)
        change(service, lambda c, run=run: endings.cancel(c, service, run, ada))
        assert status_of(service, run) == before
        assert submit(service, ada, asked) == run  # nor does another submission of it tell
        shown.append((before.state, before.version))
    assert shown[0] == shown[1]
    clock.pass_s(4)
    assert status_of(service, run).state == "cancelled"
    assert submit(service, ada, asked) != run


def test_a_check_that_is_cancelled_under_way_is_shown_at_once(service: Service, worker: Worker) -> None:
    ada = make_principal(service)
    run = submit(service, ada, request(mode="check"))
    worker.claim()
    change(service, lambda c: endings.cancel(c, service, run, ada))
    assert status_of(service, run).state == "cancelled"


def test_a_job_waits_while_no_worker_has_its_problem(service: Service, worker: Worker) -> None:
    run = submit(service, make_principal(service))
    stale = {slug: ProblemHashes(public="1" * 64, final_public="1" * 64) for slug, _ in _problems(service)}
    assert worker.hello(problems=stale) == ""  # nobody is paused
    assert worker.claim() == []
    assert status_of(service, run).waits_for == "no worker has this version of twice"
    worker.hello()
    assert worker.claim()[0].task.run == run


def test_private_cases_are_confirmed_by_an_organizer_never_by_the_first_hello(service: Service, worker: Worker) -> None:
    run = submit(service, make_principal(service))
    own = {
        slug: ProblemHashes(public=p.sha256, private="2" * 64, final_public=p.sha256, final_private="3" * 64)
        for slug, p in _problems(service)
    }
    worker.hello(problems=own)
    assert worker.claim() == []
    change(service, lambda c: c.execute(pins.insert().values(problem="twice", final=False, private_sha256="2" * 64)))
    assert worker.claim()[0].task.run == run


def test_queued_jobs_move_when_the_servers_problem_changes(service: Service, worker: Worker) -> None:
    ada = make_principal(service)
    first, moved = submit(service, ada), submit(service, ada)
    (lease,) = worker.claim()
    before = status_of(service, moved)
    problem = Path(service.project.locate("problems")) / "twice/reference.py"
    problem.write_text("def reference(x):\n    return 2 * x\n")
    sweep(service)
    after = status_of(service, moved)
    assert after.version > before.version
    assert after.waits_for == "no worker has this version of twice, which has changed since it was submitted"
    assert row(service, moved).problem_sha256 == service.files.snapshot.problem("twice").sha256
    assert row(service, first).problem_sha256 == lease.task.problem_sha256  # it is graded as it was leased
    assert worker.accept(lease) == first
    worker.hello()
    assert worker.claim()[0].task.problem_sha256 == service.files.snapshot.problem("twice").sha256


def test_a_problem_that_breaks_is_not_taken_until_it_is_whole(service: Service, worker: Worker) -> None:
    problem = Path(service.project.locate("problems")) / "twice/problem.toml"
    whole = problem.read_text()
    problem.write_text("title = 3\n")
    sweep(service)
    with refused("problem-broken", 503):
        submit(service, make_principal(service))
    problem.write_text(whole)
    sweep(service)
    submit(service, make_principal(service))


def test_the_usual_time_is_the_median_of_gradings_and_else_the_limits(service: Service, worker: Worker) -> None:
    ada = make_principal(service)
    first = submit(service, ada)
    assert row(service, first).expected_ns >= 60 * 10**9
    for seconds in (5.0, 1.0, 3.0):
        if seconds != 5.0:
            submit(service, ada)
        worker.accept(worker.claim()[0], seconds)
    assert row(service, submit(service, ada)).expected_ns == 3 * 10**9


def test_a_time_that_became_known_while_a_job_waited_counts_once_it_is_leased(service: Service, worker: Worker) -> None:
    ada = make_principal(service)
    first, second = submit(service, ada), submit(service, ada)
    assert row(service, second).expected_ns >= 60 * 10**9
    worker.accept(worker.claim()[0], 3.0)
    (lease,) = worker.claim()
    assert (lease.task.run, row(service, second).expected_ns) == (second, 3 * 10**9)
    assert row(service, first).expected_ns >= 60 * 10**9  # as it was leased


def test_owners_take_turns_even_if_their_jobs_take_no_time(service: Service, worker: Worker) -> None:
    for name in ("ada", "bob", "eve"):
        for _ in range(4):
            submit(service, make_principal(service, name), request(mode="check"))
    turns = []
    for _ in range(12):
        (lease,) = worker.claim()
        turns.append(lease.task.author)
        worker.accept(lease, seconds=None)
    assert [set(turns[at : at + 3]) for at in range(0, 12, 3)] == [{"ada", "bob", "eve"}] * 4


def test_an_owner_pays_for_a_job_that_takes_far_longer_than_expected(
    service: Service, worker: Worker, clock: FakeClock
) -> None:
    """Although the others' times pass the owner's while it is graded, and idle owners are forgotten."""
    ada, bob, other = make_principal(service), make_principal(service, "bob"), Worker(service, "gpu2")
    other.hello()
    submit(service, ada)
    (slow,) = worker.claim()
    for _ in range(5):
        submit(service, bob)
        other.accept(other.claim()[0], 60)
    change(service, forget_idle)
    worker.accept(slow, 900)
    first, *bobs = [submit(service, one) for one in (ada, bob, bob, bob)]
    assert [status_of(service, run).before for run in bobs] == [0, 1, 2]
    assert status_of(service, first).before == 3


def test_old_sources_are_dropped_and_come_back_with_a_submission(
    service: Service, worker: Worker, clock: FakeClock
) -> None:
    ada = make_principal(service)
    asked = request(mode="check")
    submit(service, ada, asked)
    worker.accept(worker.claim()[0])
    clock.pass_s(31 * 24 * 3600)
    sweep(service)
    with service.database.read() as connection:
        assert connection.exec_driver_sql("select bytes from sources").scalar() == 0
    submit(service, ada, asked)
    worker = Worker(service, "gpu2")
    worker.hello()
    assert worker.claim()[0].task.source == Submission.of(asked.source, "py", author="ada").source


def fails_for(service: Service, worker: Worker, name: str) -> None:
    """A harness error of somebody's grading, which is then cancelled."""
    ada = make_principal(service, name)
    run = submit(service, ada)
    worker.error(worker.claim()[0])
    change(service, lambda c: endings.cancel(c, service, run, ada))


def _problems(service: Service) -> list[tuple[str, Problem]]:
    return list(service.files.snapshot.problems.items())
