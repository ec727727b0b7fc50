"""Admission: what is refused, what is answered with the run that exists, and what counts towards the limits."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import closing
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select, update

from harness.errors import SubmissionError
from harness.submission import Submission
from kernelmark.server.accounts import accounts as account_changes
from kernelmark.server.database.tables import accounts, pauses, submissions
from kernelmark.server.queue import admission, endings, limits, status
from kernelmark.server.queue.admission import admit
from kernelmark.server.queue.sweeper import Sweeper
from kernelmark.server.service import Service
from kernelmark.service.organizing import AccountChange
from kernelmark.service.refusal import Refusal
from leaderboard.record.archive import archive
from leaderboard.record.ledger import JsonlLedger
from tests.service_fixtures import NO_NAMES, FakeClock, make_principal, make_project, make_service
from tests.unit.service.queue.queueing import (
    KERNEL,
    Worker,
    change,
    read,
    request,
    row,
    state,
    status_of,
    submit,
    submitted,
)
from tests.verdicts import accepted

DAY_S = 24 * 3600
PUBLIC = '[server]\nurl = "https://bench.example.org"\n'
Making = Callable[[str], Service]


@pytest.fixture
def making(tmp_path: Path, clock: FakeClock) -> Iterator[Making]:
    """Makes a service with these settings, and a worker, and with accounts that are no newcomers any more."""
    opened = []

    def make(settings: str) -> Service:
        made = make_service(make_project(tmp_path / "project", settings), clock)
        opened.append(made)
        Worker(made).hello()
        for name in ("ada", "bob", "eve"):
            make_principal(made, name)
        clock.pass_s(DAY_S + 1)
        return made

    yield make
    for made in opened:
        with closing(made.database):
            pass


def refused(code: str, status: int, words: str = "") -> Any:
    def fits(error: Refusal) -> bool:
        return (error.code, error.status) == (code, status) and words in str(error)

    return pytest.raises(Refusal, check=fits)


def graded(service: Service, seconds: float = 1.0) -> str:
    """The run of a submission of ada's that is graded at once, and shown."""
    run = submit(service, make_principal(service))
    worker = Worker(service, "quick")
    worker.hello()
    lease = next(lease for lease in worker.claim(2) if lease.task.run == run)
    worker.accept(lease, seconds)
    return run


# Requests


def test_a_key_is_bound_to_the_whole_request(making: Making) -> None:
    service = making("")
    ada, asked = make_principal(service), request()
    run, created = submitted(service, ada, asked, "key")
    assert created
    assert submitted(service, ada, asked, "key") == (run, False)
    with refused("key-used", 409):
        submitted(service, ada, asked.model_copy(update={"effort": "quick"}), "key")
    assert submitted(service, make_principal(service, "bob"), request(), "key")[1]  # another account's


@pytest.mark.parametrize(
    ("changed", "same"),
    [
        pytest.param({}, True, id="the very same"),
        pytest.param({"again": True}, False, id="again"),
        pytest.param({"mode": "bench"}, False, id="another mode"),
        pytest.param({"effort": "quick"}, False, id="another effort"),
        pytest.param({"pool": "NVIDIA H200"}, False, id="another pool"),
    ],
)
def test_the_same_source_within_a_day_gets_the_run_that_exists(
    changed: dict[str, Any], same: bool, making: Making, clock: FakeClock
) -> None:
    service = making("")
    other = Worker(service, "gpu2")
    other.hello(pool="NVIDIA H200")
    ada = make_principal(service)
    run = submit(service, ada, request(KERNEL))
    assert (submit(service, ada, request(KERNEL, **changed)) == run) == same
    assert submit(service, make_principal(service, "bob"), request(KERNEL)) != run  # nobody learns of another's
    clock.pass_s(DAY_S + 1)
    assert submit(service, ada, request(KERNEL)) != run


def test_what_was_cancelled_or_failed_or_was_of_another_problem_is_graded_again(making: Making) -> None:
    service = making("")
    ada = make_principal(service)
    run = submit(service, ada, request(KERNEL))
    change(service, lambda c: endings.cancel(c, service, run, ada))
    second = submit(service, ada, request(KERNEL))
    assert second != run
    (Path(service.project.locate("problems")) / "twice/reference.py").write_text("def reference(x): return 2 * x\n")
    service.files.refresh(service.database)
    assert submit(service, ada, request(KERNEL)) != second


def test_receipts_are_never_before_an_earlier_one(making: Making, clock: FakeClock) -> None:
    service = making("")
    ada = make_principal(service)
    first = submit(service, ada)
    clock.now -= 3600 * 10**9  # the machine's clock is set back
    assert row(service, submit(service, ada)).queued_ns > row(service, first).queued_ns


@pytest.mark.parametrize(
    ("fields", "code", "status"),
    [
        ({"problem": "softmax"}, "no-such-problem", 404),
        ({"pool": "NVIDIA H300"}, "no-such-pool", 422),
        ({"effort": "screen"}, "effort", 422),
        ({"language": "cpp"}, "language", 422),
    ],
)
def test_what_the_server_does_not_grade_is_refused(
    fields: dict[str, Any], code: str, status: int, making: Making
) -> None:
    service = making("")
    with refused(code, status):
        submit(service, make_principal(service), request(**fields))


def test_a_problem_without_a_case_for_the_device_is_refused(making: Making) -> None:
    service = making("")
    ada, file = make_principal(service), service.project.root / "problems/twice/problem.toml"
    submit(service, ada)
    file.write_text(file.read_text().replace("params", 'devices = ["cpu"], params'))
    service.files.refresh(service.database)
    with refused("no-case", 422, "problem twice has no case for cuda"):
        submit(service, ada)


@pytest.mark.parametrize("source", [b"\xff\xfe", b"a\0b"])
def test_what_is_no_text_is_refused(source: bytes, making: Making) -> None:
    service = making("")
    with pytest.raises(SubmissionError):
        submit(service, make_principal(service), request(source))
    assert read(service, lambda c: c.execute(select(submissions)).all()) == []


def test_without_a_worker_there_is_no_pool_yet(service: Service) -> None:
    ada = make_principal(service)
    with refused("no-pool", 503):
        submit(service, ada, request(pool=None))
    service.own_worker.set()
    with refused("worker-starting", 503, "is starting its worker"):
        submit(service, ada, request(pool=None))


def test_a_pool_of_the_settings_takes_submissions_before_its_worker_comes(making: Making) -> None:
    service = making('[server]\npools = ["NVIDIA H200", "NVIDIA H100"]\n')
    run = submit(service, make_principal(service), request(pool=None))
    assert row(service, run).pool == "NVIDIA H200"
    assert status_of(service, run).waits_for == "no worker with NVIDIA H200 is connected"


# The schedule


def scheduled(service: Service, deadline: datetime, more: str = "") -> None:
    problem = Path(service.project.locate("problems")) / "twice/problem.toml"
    problem.write_text(f"deadline = {deadline.isoformat()}\n{more}{problem.read_text()}")
    service.files.refresh(service.database)


def test_after_a_problem_has_closed_only_practice_is_possible(making: Making, clock: FakeClock) -> None:
    service = making("")
    ada = make_principal(service)
    deadline = datetime.fromtimestamp(clock.now // 10**9 + 60, UTC)
    scheduled(service, deadline)
    on_time = submit(service, ada)
    clock.pass_s(120)
    with refused("closed", 403, "takes no more submissions, closed since"):
        submit(service, ada)
    late = submit(service, ada, request(mode="check"))
    assert (status_of(service, on_time).on_time, status_of(service, late).on_time) == (True, False)
    assert (row(service, on_time).final, row(service, late).final) == (False, True)


def test_what_is_late_says_so_for_ever(making: Making, clock: FakeClock) -> None:
    service = making("")
    scheduled(service, datetime.fromtimestamp(clock.now // 10**9, UTC), "late = { days = 2, penalty_per_day = 0.1 }\n")
    clock.pass_s(3600)
    run = submit(service, make_principal(service))
    remark = read(service, lambda c: c.scalar(select(submissions.c.remark).where(submissions.c.run == run)))
    assert '"action": "late", "actor": "late policy", "reason": "1 day late, factor 0.9: handed in ' in str(remark)
    assert not status_of(service, run).on_time


def test_what_was_on_time_and_is_graded_late_says_so(making: Making, clock: FakeClock) -> None:
    service = making("")
    scheduled(service, datetime.fromtimestamp(clock.now // 10**9 + 60, UTC))
    run = submit(service, make_principal(service))
    clock.pass_s(3600)
    worker = Worker(service, "quick")
    worker.hello()
    (lease,) = worker.claim()
    assert not lease.task.final  # it is graded as of its receipt
    worker.accept(lease)
    remark = read(service, lambda c: c.scalar(select(submissions.c.remark).where(submissions.c.run == run)))
    assert '"action": "annotate", "actor": "server", "reason": "graded after the deadline, but handed in on' in str(
        remark
    )


@pytest.mark.parametrize("ranks", [True, False])
def test_staff_do_not_rank_unless_the_project_says_so(ranks: bool, making: Making) -> None:
    service = making(f"[server]\nstaff_ranks = {str(ranks).lower()}\n")
    run = submit(service, make_principal(service, "org", "organizer"))
    remark = read(service, lambda c: c.scalar(select(submissions.c.remark).where(submissions.c.run == run)))
    assert (remark is None) == ranks


# Limits


def test_a_limit_is_reserved_when_a_submission_is_queued(making: Making, clock: FakeClock) -> None:
    service = making("[limits]\ngradings_a_day = 2\n")
    ada = make_principal(service)
    first = submit(service, ada)
    assert status_of(service, first).left == "1 of 2 gradings"
    submit(service, ada, request(mode="bench"))  # counts as a grading
    with refused("limit-reached", 429, "ada has used 2 of 2 gradings in 24 hours; possible again from") as caught:
        submit(service, ada)
    assert caught.value.retry_after_s == DAY_S
    submit(service, ada, request(mode="check"))  # counts as a check
    submit(service, make_principal(service, "bob"))
    clock.pass_s(DAY_S + 1)
    submit(service, ada)


def test_parallel_requests_get_what_is_left_and_no_more(making: Making) -> None:
    service = making("[limits]\ngradings_a_day = 3\n")
    ada = make_principal(service)
    changes = [partial(admit, service=service, principal=ada, request=request(), name="kernel.py") for _ in range(20)]
    asked: list[Future[tuple[str, bool]]] = [
        service.database.write(partial(one, idempotency_key=f"key{number}", request_sha256="0"))
        for number, one in enumerate(changes)
    ]
    outcomes = [future.exception() for future in asked]
    assert outcomes.count(None) == 3
    assert {error.code for error in outcomes if isinstance(error, Refusal)} == {"limit-reached"}


def test_what_is_only_reserved_keeps_nobody_out_for_a_day(making: Making) -> None:
    service = making("[limits]\ndevice_seconds_a_day = 20\n")
    first = submit(service, make_principal(service))
    assert status_of(service, first).left.startswith("none of 20 device seconds; what is queued has reserved the rest")
    words = "has used 0 of 20 device seconds in 24 hours, and 60 are reserved by what is queued"
    with refused("limit-reached", 429, words) as caught:
        submit(service, make_principal(service))
    assert caught.value.retry_after_s == 60


def test_device_seconds_that_were_used_keep_one_out_for_a_day(making: Making, clock: FakeClock) -> None:
    service = making("[limits]\ndevice_seconds_a_day = 20\n")
    for seconds in (4.0, 30.0):
        graded(service, seconds)
        clock.pass_s(3600)
    with refused("limit-reached", 429, "has used 34 of 20 device seconds in 24 hours; possible again from") as caught:
        submit(service, make_principal(service))
    assert caught.value.retry_after_s == DAY_S - 3600


def test_device_seconds_are_reserved_and_put_right(making: Making) -> None:
    service = making("[limits]\ndevice_seconds_a_day = 20\n")
    first = submit(service, make_principal(service))
    with refused("limit-reached", 429, "of 20 device seconds"):  # nobody knows how long the first one takes
        submit(service, make_principal(service))
    worker = Worker(service, "quick")
    worker.hello()
    worker.accept(worker.claim()[0], 4.0)
    service.clock.pass_s(5)  # type: ignore[attr-defined]  # until its end is shown
    assert status_of(service, first).left == "16 of 20 device seconds"
    submit(service, make_principal(service))


def test_what_a_hidden_end_costs_is_not_told_before_it_is_shown(making: Making, clock: FakeClock) -> None:
    service = making("[limits]\ndevice_seconds_a_day = 100000\n")
    clock.now = -(-clock.now // (5 * 10**9)) * 5 * 10**9 + 10**9
    run = submit(service, make_principal(service))
    before = status_of(service, run).left
    worker = Worker(service, "quick")
    worker.hello()
    worker.accept(worker.claim()[0], 4.0)
    assert status_of(service, run).left == before
    clock.pass_s(4)
    assert status_of(service, run).left == "99996 of 100000 device seconds"


def test_a_hidden_end_takes_its_place_in_the_queue_until_it_is_shown(making: Making, clock: FakeClock) -> None:
    service = making("[limits]\nqueued_at_once = 1\n")
    clock.now = -(-clock.now // (5 * 10**9)) * 5 * 10**9 + 10**9
    graded(service)
    submit(service, make_principal(service, "bob"))
    with refused("queue-full", 429, "has 1 of 1 submissions"):
        submit(service, make_principal(service))
    clock.pass_s(4)
    submit(service, make_principal(service))


def test_what_is_left_is_counted_once_for_a_list(making: Making, monkeypatch: pytest.MonkeyPatch) -> None:
    service = making("[limits]\ngradings_a_day = 9\n")
    runs = [submit(service, make_principal(service, name)) for name in ("ada", "ada", "bob")]
    counted, left = list[Any](), limits.left

    def counting(*arguments: Any) -> str:
        counted.append(arguments)
        return left(*arguments)

    monkeypatch.setattr(limits, "left", counting)
    found = read(service, lambda c: status.statuses(c, service, runs))
    assert len(counted) == 2
    assert [(one.run, one.left) for one in found] == [(run, status_of(service, run).left) for run in runs]


def test_uses_are_read_one_by_one_only_to_say_until_when_a_limit_is_reached(
    making: Making, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = making("[limits]\ngradings_a_day = 3\ndevice_seconds_a_day = 1000\n")
    made, use = list[str](), limits.Use

    def making_one(author: str, *arguments: Any, **more: Any) -> Any:
        made.append(author)
        return use(author, *arguments, **more)

    monkeypatch.setattr(limits, "Use", making_one)
    runs = [submit(service, make_principal(service)) for _ in range(2)]
    assert status_of(service, runs[0]).left == "1 of 3 gradings, 880 of 1000 device seconds"
    submit(service, make_principal(service))
    assert made == []
    with refused("limit-reached", 429, "has used 3 of 3 gradings"):
        submit(service, make_principal(service))
    assert made == ["ada"] * 3


def test_a_team_shares_its_limits_and_leaving_it_changes_nothing_for_a_day(making: Making, clock: FakeClock) -> None:
    service = making("[limits]\ngradings_a_day = 2\n")
    org = make_principal(service, "org", "organizer")

    def move(name: str, team: str | None) -> None:
        now_ns, order = clock.now_ns(), AccountChange(team=team, no_team=team is None)
        change(service, lambda c: account_changes.change(c, now_ns, org, name, NO_NAMES, order))

    for name in ("ada", "bob"):
        move(name, "quick")
    submit(service, make_principal(service, "ada"))
    submit(service, make_principal(service, "bob"))
    with refused("limit-reached", 429, "quick (ada) has used 2 of 2"):
        submit(service, make_principal(service, "ada"))
    move("ada", None)
    submit(service, make_principal(service, "ada"))  # her own second
    with refused("limit-reached", 429, "bob"):  # the one that left counts for the team still
        submit(service, make_principal(service, "bob"))
    move("ada", "other")
    move("eve", "other")
    with refused("limit-reached", 429, "other (eve)"):  # no team gains gradings by whom it takes in
        submit(service, make_principal(service, "eve"))
    clock.pass_s(DAY_S + 1)
    submit(service, make_principal(service, "eve"))
    submit(service, make_principal(service, "bob"))


def test_runs_that_only_the_ledger_has_count_and_ones_own_once(making: Making, clock: FakeClock) -> None:
    service = making("[limits]\ngradings_a_day = 3\n")
    moment = datetime.fromtimestamp(clock.now / 1e9, UTC) - timedelta(hours=1)
    own = graded(service)
    ledger = JsonlLedger(Path(service.project.locate("results")) / "twice.jsonl")
    for run in (own, "0123456789abcdef"):
        verdict = accepted(author="ada", problem="twice", created_at=moment)
        ledger.append(verdict.model_copy(update={"run": run}))
    os.utime(ledger.path, (clock.now / 1e9, clock.now / 1e9))
    service.files.refresh(service.database)
    assert status_of(service, own).left == "1 of 3 gradings"


def test_cancelled_while_queued_gives_the_reservation_back(making: Making) -> None:
    service = making("[limits]\ngradings_a_day = 1\n")
    ada = make_principal(service)
    run = submit(service, ada)
    change(service, lambda c: endings.cancel(c, service, run, ada))
    again = submit(service, ada)
    worker = Worker(service, "quick")
    worker.hello()
    worker.claim()
    change(service, lambda c: endings.cancel(c, service, again, ada))
    with refused("limit-reached", 429):
        submit(service, ada)


def test_beyond_this_machine_there_are_limits_by_default(making: Making) -> None:
    service = making(PUBLIC)
    ada = make_principal(service)
    assert status_of(service, submit(service, ada)).left.startswith(
        "29 of 30 gradings, 60 of 60 checks, 540 of 600 device"
    )
    for _ in range(4):
        submit(service, ada)
    with refused("queue-full", 429, "has 5 of 5 submissions in the queue"):
        submit(service, ada)


def test_on_this_machine_there_are_none(making: Making) -> None:
    service = making("")
    for _ in range(10):
        run = submit(service, make_principal(service))
    assert status_of(service, run).left == ""


def test_five_failures_a_day_are_the_owners_own_limit(making: Making) -> None:
    service = making(PUBLIC)
    ada, worker = make_principal(service), Worker(service, "quick")
    worker.hello()
    for _ in range(5):
        run = submit(service, ada)
        worker.error(worker.claim()[0], "usage")
        assert state(service, run) == "failed"
    with refused("limit-reached", 429, "5 gradings end with errors"):
        submit(service, ada)
    submit(service, make_principal(service, "bob"))


def spend_leases(service: Service, worker: Worker, *, progress: bool) -> None:
    """Submit something of ada's that fails since its worker is started anew again and again."""
    run = submit(service, make_principal(service))
    for _ in range(5):
        worker.hello()
        (lease,) = worker.claim()
        if progress:
            worker.progress(lease)
        change(service, lambda c: endings.requeue_all(c, service, worker.name))
        worker.held.clear()
    assert (state(service, run), row(service, run).error_class) == ("failed", "LeasesSpentError")


def test_what_a_worker_never_began_is_not_among_the_owners_failures(making: Making) -> None:
    service = making(PUBLIC)
    worker = Worker(service, "quick")
    for _ in range(6):
        spend_leases(service, worker, progress=False)
    submit(service, make_principal(service))


def test_what_ends_its_workers_while_it_is_graded_is_among_them(making: Making) -> None:
    service = making(PUBLIC)
    worker = Worker(service, "quick")
    for _ in range(5):
        spend_leases(service, worker, progress=True)
    with refused("limit-reached", 429, "5 gradings end with errors"):
        submit(service, make_principal(service))


def test_all_newcomers_are_one_owner_in_the_queue_beyond_this_machine(making: Making) -> None:
    service = making(f"{PUBLIC}[limits]\ndevice_seconds_a_day = 100000\n")
    new = [submit(service, make_principal(service, f"new{number}")) for number in range(3)]
    old = submit(service, make_principal(service, "ada"))
    assert {row(service, run).share for run in new} == {"newcomers"}
    assert row(service, old).share == "account:ada"
    assert status_of(service, old).before == 1  # after the first of them, not the third


def test_everybodys_device_seconds_have_a_limit(making: Making) -> None:
    service = making("[limits]\nall_device_seconds_a_day = 3\n")
    graded(service, 4.0)
    service.files.refresh_totals(service.database)
    with refused("limit-reached", 429, "all submissions together"):
        submit(service, make_principal(service, "bob"))


# Room and pauses


def test_a_full_disk_and_a_full_queue_take_nothing_more(making: Making, monkeypatch: pytest.MonkeyPatch) -> None:
    service = making("")
    submit(service, make_principal(service))
    with monkeypatch.context() as patched:
        patched.setattr(admission, "LEAST_FREE_BYTES", 1 << 62)
        with refused("disk-full", 503):
            submit(service, make_principal(service))
    for limit in ("_MOST_QUEUED", "_MOST_QUEUED_BYTES"):
        with monkeypatch.context() as patched:
            patched.setattr(admission, limit, 1)
            with refused("queue-full", 503):
                submit(service, make_principal(service))
    submit(service, make_principal(service))


def test_a_source_that_could_not_be_archived_is_refused(making: Making) -> None:
    service = making("")
    honest = Submission.of(KERNEL, "py", author="ada", name="kernel.py")
    path = archive(service.project.locate("archive"), "twice", honest)
    submit(service, make_principal(service), request(KERNEL))
    path.write_bytes(b"# something else\n")
    with refused("archive", 503):
        submit(service, make_principal(service), request(KERNEL, again=True))
    submit(service, make_principal(service))


def test_a_paused_account_submits_and_gets_nothing_until_it_is_resumed(making: Making) -> None:
    service = making("")
    run = submit(service, make_principal(service))
    pause = {"subject": "ada", "by": "org", "why": "floods", "at_ns": 0}
    change(service, lambda c: c.execute(pauses.insert().values(**pause)))
    with refused("paused", 403, "floods"):
        submit(service, make_principal(service))
    worker, other = Worker(service, "quick"), submit(service, make_principal(service, "bob"))
    worker.hello()
    assert [lease.task.run for lease in worker.claim(2)] == [other]
    assert status_of(service, run).waits_for == "submissions of ada are paused: floods"
    change(service, lambda c: c.execute(pauses.delete()))
    assert worker.claim()[0].task.run == run


def test_a_paused_queue_takes_submissions_and_grades_none(making: Making) -> None:
    service = making("")
    pause = {"subject": "", "by": "org", "why": "the room is too hot", "at_ns": 0}
    change(service, lambda c: c.execute(pauses.insert().values(**pause)))
    run, worker = submit(service, make_principal(service)), Worker(service, "quick")
    worker.hello()
    assert worker.claim() == []
    assert status_of(service, run).waits_for == "the queue is paused: the room is too hot"


def test_what_a_banned_account_has_queued_is_cancelled(making: Making) -> None:
    service = making("")
    run, other = submit(service, make_principal(service)), submit(service, make_principal(service, "bob"))
    change(service, lambda c: c.execute(update(accounts).where(accounts.c.name == "ada").values(state="banned")))
    Sweeper(service).sweep()
    assert (state(service, run), state(service, other)) == ("cancelled", "queued")


def test_a_time_is_told_once_something_like_it_was_graded(making: Making, clock: FakeClock) -> None:
    service = making("")
    clock.now = -(-clock.now // (5 * 10**9)) * 5 * 10**9 + 10**9
    first = submit(service, make_principal(service))
    assert (status_of(service, first).before, status_of(service, first).expected_s) == (0, None)
    worker = Worker(service, "quick")
    worker.hello()
    worker.accept(worker.claim()[0], seconds=4.0)
    second = submit(service, make_principal(service))
    assert status_of(service, second).expected_s is None  # the first one's end, with hidden tests, is not shown yet
    clock.pass_s(4)
    third = submit(service, make_principal(service))
    assert row(service, third).expected_ns == 4 * 10**9
