"""A worker beside a server: what it says, how many tasks it takes, and what becomes of answers when one goes away."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.errors import (
    DeviceError,
    HarnessError,
    ProblemError,
    SandboxError,
    SettingsError,
    SubmissionError,
    UsageError,
)
from harness.judge import Progress
from harness.problem.load import identify
from harness.verdict import Check, Stage, Verdict
from kernelmark.client.connection import Refused
from kernelmark.grading.fleet.messages import JobAnswer, JobRequest, WorkerAway, WorkerLost
from kernelmark.project.problems import find_problem
from kernelmark.project.settings import Settings
from kernelmark.worker import gradings
from tests.fake_server import Document, FakeServer, refusal_of
from tests.unit.service.worker.conftest import Started
from tests.workers import FakeWorker, answered, held, until

Lease = Callable[..., Document]
TESTS = Path(__file__).parents[3]
SALT = f'salt = "{"0123456789abcdef" * 2}"\n'


def kept(competition: Path, suffix: str = "json") -> list[Path]:
    return sorted((competition / ".kernelmark/worker").glob(f"*/*/*.{suffix}"))


@pytest.mark.parametrize(
    ("mode", "timed", "hidden"),
    [("check", False, False), ("bench", True, False), ("screen", True, False), ("submit", True, True)],
)
def test_a_task_is_graded_as_its_mode_says_and_answered_with_the_document(
    server: FakeServer, started: Started, lease: Lease, mode: str, timed: bool, hidden: bool
) -> None:
    started(worker := FakeWorker())
    server.lease(leased := lease(mode=mode, effort="thorough", name="mine.py"))
    answer = server.answer_to(leased)
    [asked] = worker.handed
    assert (asked.timed, asked.hidden, asked.run) == (timed, hidden, leased["task"]["run"])
    assert asked.effort == {"check": "default", "screen": "screen"}.get(mode, "thorough")
    assert (asked.submission.name, asked.submission.author) == ("mine.py", "ada")
    assert (asked.device, asked.sandbox, asked.baselines) == ("cpu", "bwrap", ("auto",) if timed else ())
    if timed:
        assert Verdict.from_json(answer["verdict"]) == answered(asked).verdict
        assert Verdict.from_json(answer["verdict"]).to_json() == answer["verdict"]
    else:
        assert Check.model_validate_json(answer["check"]) == answered(asked).check
    assert answer["instance"] == server.hellos[0]["instance"]


def test_hidden_tests_run_in_a_check_where_the_workers_own_settings_say_so(
    server: FakeServer, started: Started, lease: Lease, competition: Path
) -> None:
    with (competition / "kernelmark.toml").open("a") as file:
        file.write("[server]\nchecks_hidden = true\n")
    started(worker := FakeWorker())
    server.lease(leased := lease())
    server.answer_to(leased)
    assert worker.handed[0].hidden


def test_a_hello_says_what_it_has_and_comes_again_when_that_changes(
    server: FakeServer, started: Started, competition: Path, tmp_path: Path
) -> None:
    private = tmp_path / "private"
    private.mkdir()
    with (competition / "kernelmark.toml").open("a") as file:
        file.write(f'private_cases = "{private}"\n')
    running = started(FakeWorker(slots=2))
    server.until(lambda: server.hellos)
    [hello] = server.hellos
    assert (hello["pool"], hello["device"], hello["sandbox"]) == ("CPU", "cpu", "bwrap")
    assert (hello["devices"], hello["slots"], list(hello["problems"])) == (1, 2, ["double"])
    assert "private" not in hello["problems"]["double"]
    (private / "double.toml").write_text(f'{SALT}[[tests]]\nname = "more"\nparams = {{ n = 5 }}\n')
    (private / "double.final.toml").write_text(f'{SALT}[[tests]]\nname = "last"\nparams = {{ n = 6 }}\n')
    running.worker._wake.set()  # as each minute
    server.until(lambda: len(server.hellos) > 1)
    problem = server.hellos[-1]["problems"]["double"]
    assert problem["public"] == problem["final_public"] == hello["problems"]["double"]["public"]
    assert len({problem["public"], problem["private"], problem["final_private"]}) == 3


@pytest.mark.parametrize("final", [False, True])
def test_private_cases_are_in_the_hash_that_the_judge_is_given_and_final_ones_if_the_task_says_so(
    server: FakeServer, started: Started, lease: Lease, competition: Path, tmp_path: Path, final: bool
) -> None:
    private = tmp_path / "private"
    private.mkdir()
    (private / "double.toml").write_text(f'{SALT}[[tests]]\nname = "more"\nparams = {{ n = 5 }}\n')
    (private / "double.final.toml").write_text(f'{SALT}[[tests]]\nname = "last"\nparams = {{ n = 6 }}\n')
    problem = competition / "problems/double/problem.toml"
    problem.write_text("deadline = 2999-01-01T00:00:00Z\n" + problem.read_text())
    with (competition / "kernelmark.toml").open("a") as file:
        file.write(f'private_cases = "{private}"\n')
    started(worker := FakeWorker())
    server.lease(leased := lease(mode="submit", final=final))
    server.answer_to(leased)
    [asked] = worker.handed
    loaded = find_problem(Settings.load(competition), "double", final)
    assert (asked.problem_sha256, asked.final) == (loaded.sha256, final)
    assert len(loaded.final_tests) == int(final)


def test_it_claims_for_each_free_slot_and_one_more(server: FakeServer, started: Started, lease: Lease) -> None:
    started(worker := FakeWorker(held, slots=2))
    server.until(lambda: server.claims)
    assert server.claims[0]["free"] == 3
    server.lease(*(lease(f"# {n}\n", n) for n in range(2)))
    server.until(lambda: server.claims and server.claims[-1]["free"] == 1)
    server.lease(lease("# 2\n", 2))
    asked = worker.has(3)
    claims = len({claim["claim"] for claim in server.claims})
    worker.answer(asked[0])
    server.until(lambda: len({claim["claim"] for claim in server.claims}) > claims)
    assert server.claims[-1]["free"] == 1, "while it was full it did not ask"


def test_more_leases_than_it_asked_for_are_not_taken(server: FakeServer, started: Started, lease: Lease) -> None:
    started(worker := FakeWorker(held))
    server.lease(*(lease(f"# {n}\n", n) for n in range(9)))
    assert len(worker.has(2)) == 2
    server.until(lambda: len(server.held) == 2)


def test_steps_and_cancellations_pass_between_server_and_judge(
    server: FakeServer, started: Started, lease: Lease
) -> None:
    started(worker := FakeWorker(held))
    server.lease(leased := lease(), other := lease("# other\n", 2))
    requests = {request.run: request for request in worker.has(2)}  # threads hand them over in any order
    first, second = requests[leased["task"]["run"]], requests[other["task"]["run"]]
    worker.step(first, Progress(Stage.TEST, 3, 20, "n=1" * 100))

    def told() -> list[Document]:
        return [each for beat in server.beats for each in beat["held"] if each.get("progress")]

    server.until(told)
    label = ("n=1" * 100)[:200]
    assert told()[0] == {
        "lease": leased["lease"],
        "progress": {"stage": "test", "done": 3, "total": 20, "label": label},
    }
    server.end(leased["lease"])
    until(lambda: worker.cancelled == [first.run])
    server.until(lambda: server.held == [other["lease"]])
    worker.answer(second)
    server.answer_to(other)
    assert len(server.answers) == 1, "nobody wants the other's answer"


def test_a_run_that_comes_again_waits_until_its_ended_grading_has_ended(
    server: FakeServer, started: Started, lease: Lease
) -> None:
    class Slow(FakeWorker):
        def cancel(self, run: str) -> None:
            self.cancelled.append(run)

    started(worker := Slow(held))
    server.lease(first := lease())
    [asked] = worker.has(1)
    server.end(first["lease"])
    until(lambda: worker.cancelled)
    server.lease(again := lease())
    server.until(lambda: again["lease"] in server.held)
    assert len(worker.has(1)) == 1
    worker.end(asked, JobAnswer.failed(asked.run, HarnessError("it was cancelled")))
    worker.answer(worker.has(2)[1])
    assert server.answer_to(again).get("error") is None
    assert [answer["lease"] for answer in server.answers] == [again["lease"]]


@pytest.mark.parametrize(
    ("error", "fault"),
    [
        (SubmissionError("k.py", "does not run on a CPU"), "usage"),
        (ProblemError("double", "fails in a hidden test"), "usage"),
        (SettingsError("kernelmark.toml", "cannot be read as TOML"), "worker"),
        (DeviceError("the driver failed"), "harness"),
        (HarnessError("it ended"), "harness"),
        (SandboxError("bwrap did not start"), "harness"),
        (WorkerLost("a worker ended with status -11"), "judge-lost"),
        (WorkerAway("a worker ended with status 1"), "harness"),
    ],
)
def test_an_error_says_whose_it_is(
    server: FakeServer, started: Started, lease: Lease, error: Exception, fault: str
) -> None:
    lost = isinstance(error, WorkerLost)
    started(FakeWorker(lambda request: error if lost else JobAnswer.failed(request.run, error)))  # type: ignore[arg-type, return-value]
    server.lease(leased := lease())
    said = server.answer_to(leased)["error"]
    assert (said["fault"], said["error_class"]) == (fault, type(error).__name__)
    assert said["what"] in str(error)
    assert said["where"] == (error.where if isinstance(error, UsageError) else "")


def test_once_its_settings_are_valid_again_it_takes_what_it_gave_back(
    server: FakeServer, started: Started, lease: Lease, competition: Path
) -> None:
    good = (file := competition / "kernelmark.toml").read_text()
    error = SettingsError(str(file), "cannot be read as TOML")
    running = started(FakeWorker(lambda request: JobAnswer.failed(request.run, error)))
    server.until(lambda: server.hellos)
    file.write_text("[limits\n")
    server.lease(leased := lease())
    assert server.answer_to(leased)["error"]["fault"] == "worker"
    until(lambda: running.worker._checkout._read.fault)
    assert len(server.hellos) == 1
    file.write_text(good)
    running.worker._wake.set()  # as each minute
    server.until(lambda: len(server.hellos) == 2)


def test_a_task_whose_machine_is_lost_is_given_to_another(server: FakeServer, started: Started, lease: Lease) -> None:
    tried: list[str] = []

    def act(request: JobRequest) -> JobAnswer | WorkerLost:
        tried.append(request.run)
        return answered(request) if len(tried) > 2 else WorkerAway("its machine was switched off")

    started(FakeWorker(act))
    server.lease(leased := lease())
    assert "check" in server.answer_to(leased)
    assert len(tried) == 3


def test_a_problem_that_changes_after_it_was_claimed_is_the_workers_fault(
    server: FakeServer, started: Started, lease: Lease, competition: Path
) -> None:
    def act(request: JobRequest) -> JobAnswer:
        (competition / "problems/double/reference.py").write_text("# another\n")
        return JobAnswer.failed(request.run, ProblemError("double", "differs"))

    started(FakeWorker(act))
    server.lease(leased := lease())
    assert server.answer_to(leased)["error"]["fault"] == "worker"


def test_private_cases_that_changed_since_the_hello_are_told_before_anything_is_graded_with_them(
    server: FakeServer, started: Started, lease: Lease, competition: Path, tmp_path: Path
) -> None:
    """As where a phase with cases of its own begins: the answers would be refused, each after a whole grading."""
    private = tmp_path / "private"
    private.mkdir()
    with (competition / "kernelmark.toml").open("a") as file:
        file.write(f'private_cases = "{private}"\n')
    started(worker := FakeWorker())
    server.until(lambda: server.hellos)
    (private / "double.toml").write_text(f'{SALT}[[tests]]\nname = "more"\nparams = {{ n = 5 }}\n')
    server.lease(leased := lease())
    assert server.answer_to(leased)["error"]["fault"] == "worker"
    assert worker.handed == []
    server.until(lambda: "private" in server.hellos[-1]["problems"]["double"])
    server.lease(leased := lease())
    assert "check" in server.answer_to(leased)


def test_an_imported_problem_whose_files_changed_here_is_the_workers_fault_until_they_are_restored(
    server: FakeServer, started: Started, lease: Lease, competition: Path, tmp_path: Path
) -> None:
    """Its hash is the same, as it names the files: every submission to it failed for good."""
    slug = "kernelbench_1_1_double"
    (folder := competition / "problems" / slug).mkdir()
    shutil.copy(TESTS / f"data/imported/{slug}.toml", folder / "problem.toml")
    shutil.copytree(TESTS / "foreign/KernelBench", checkout := tmp_path / "KernelBench")
    with (competition / "kernelmark.toml").open("a") as file:
        file.write(f'kernelbench_checkout = "{checkout}"\n')
    running = started(worker := FakeWorker())
    server.until(lambda: server.hellos)
    assert slug in server.hellos[-1]["problems"]
    original = (source := checkout / "level1/1_Double.py").read_text()
    source.write_text(original + "# changed\n")
    asked = {"problem": slug, "problem_sha256": identify(folder)}
    server.lease(leased := lease(**asked))
    error = server.answer_to(leased)["error"]
    assert (error["fault"], worker.handed) == ("worker", [])
    assert "1_Double.py has changed since it was imported" in error["what"]
    server.until(lambda: slug not in server.hellos[-1]["problems"])
    source.write_text(original)
    running.worker._wake.set()  # as each minute
    server.until(lambda: slug in server.hellos[-1]["problems"])
    server.lease(leased := lease(number=2, **asked))
    assert "check" in server.answer_to(leased)


def test_while_the_server_is_away_it_goes_on_and_answers_afterwards(
    server: FakeServer, started: Started, lease: Lease, competition: Path
) -> None:
    started(worker := FakeWorker(held))
    server.lease(leased := lease())
    [asked] = worker.has(1)
    server.is_away = True
    worker.answer(asked)
    until(lambda: len(kept(competition)) == 1)
    assert server.answers == []
    server.is_away = False
    server.answer_to(leased)
    until(lambda: kept(competition) == [])
    server.until(lambda: server.beats and server.held == [])


def test_what_an_earlier_start_left_is_sent_before_its_jobs_go_to_others(
    server: FakeServer, started: Started, lease: Lease, competition: Path
) -> None:
    first = started(worker := FakeWorker(held))
    server.lease(leased := lease())
    [asked] = worker.has(1)
    server.is_away = True
    worker.answer(asked)
    until(lambda: len(kept(competition)) == 1)
    first.stop()
    server.is_away = False
    hellos = len(server.hellos)
    answered_before_hello: list[bool] = []
    note = server._note

    def noting(where: list[Document], document: Document) -> None:
        if where is server.hellos:
            answered_before_hello.append(bool(server.answers))
        note(where, document)

    server._note = noting  # type: ignore[method-assign]
    started()
    server.until(lambda: len(server.hellos) > hellos)
    assert answered_before_hello[0]
    answer = server.answer_to(leased)
    assert answer["verdict" if "verdict" in answer else "check"]
    until(lambda: kept(competition) == [])


@pytest.mark.parametrize(("status", "aside"), [(409, 0), (422, 1)])
def test_an_answer_that_does_not_count_is_not_sent_again(
    server: FakeServer, started: Started, lease: Lease, competition: Path, status: int, aside: int
) -> None:
    server.refused_answers.append(refusal_of(status, "no"))
    started()
    server.lease(lease())
    until(lambda: not server.refused_answers)
    server.lease(other := lease("# other\n", 2))
    server.answer_to(other)
    assert len(server.answers) == 1
    until(lambda: kept(competition) == [])
    assert len(kept(competition, "refused")) == aside


@pytest.mark.parametrize(("status", "code"), [(429, "later"), (503, "later"), (409, "hello-first")])
def test_an_answer_that_is_not_taken_now_is_sent_again(
    server: FakeServer, started: Started, lease: Lease, status: int, code: str
) -> None:
    server.refused_answers.append(refusal_of(status, code))
    started()
    server.lease(leased := lease())
    server.answer_to(leased)
    if code == "hello-first":
        server.until(lambda: len(server.hellos) > 1)


def test_a_file_that_is_no_answer_is_set_aside(server: FakeServer, started: Started, competition: Path) -> None:
    started().stop()
    [folder] = (competition / ".kernelmark/worker").glob("*/*")
    (folder / f"{'0' * 32}.json").write_text("{}")
    started()
    until(lambda: [path.suffix for path in folder.glob("0*")] == [".refused"])
    assert server.answers == []


def test_two_workers_of_one_checkout_keep_their_answers_apart(
    server: FakeServer, started: Started, competition: Path
) -> None:
    started()
    started()
    server.until(lambda: len(server.hellos) == 2)
    assert sorted(path.name for path in (competition / ".kernelmark/worker").glob("*/*")) == ["1", "2"]
    assert (competition / ".kernelmark/.gitignore").read_text() == "*\n", "no part of the project's repository"
    assert len({hello["instance"] for hello in server.hellos}) == 2


def test_a_worker_whose_earlier_start_is_not_known_to_have_ended_waits(server: FakeServer, started: Started) -> None:
    server.refused_hellos += [refusal_of(409, "second-worker")] * 2
    running = started()
    server.until(lambda: server.hellos and server.claims)
    assert running.stop() is None


@pytest.mark.parametrize("status", [401, 403, 422])
def test_a_worker_that_the_server_does_not_want_ends_with_the_reason(
    server: FakeServer, started: Started, status: int
) -> None:
    server.refused_hellos.append(refusal_of(status, "protocol", "speaks another protocol"))
    error = started().wait()
    assert isinstance(error, Refused)
    assert "the test: speaks another protocol; do something else" in str(error)


def test_it_claims_nothing_while_it_is_paused(server: FakeServer, started: Started, lease: Lease) -> None:
    server.paused = "an organizer paused it"
    started(worker := FakeWorker())
    server.until(lambda: len(server.beats) > 2)
    assert server.claims == []
    server.lease(leased := lease())
    server.paused = ""
    server.answer_to(leased)
    assert len(worker.handed) == 1


def test_it_gives_back_what_it_holds_when_it_ends(server: FakeServer, started: Started, lease: Lease) -> None:
    running = started(worker := FakeWorker(held))
    server.lease(lease())
    worker.has(1)
    assert running.stop() is None
    assert (server.beats[-1]["held"], server.beats[-1]["leaves"], server.answers) == ([], True, [])


def test_a_lease_that_ends_before_its_answer_could_be_sent_is_held_no_longer(
    server: FakeServer, started: Started, lease: Lease, competition: Path
) -> None:
    """The server answers a heartbeat with a lease that has ended at once: it was asked again without a pause."""
    server.hears_no_answer = True
    started()
    server.lease(leased := lease())
    until(lambda: kept(competition) and server.held)
    server.end(leased["lease"])
    until(lambda: not server.ended and not server.held)


def test_it_leaves_also_if_its_last_answer_is_refused(
    server: FakeServer, started: Started, lease: Lease, competition: Path
) -> None:
    server.refused_answers += [refusal_of(429, "later")] * 1000
    running = started()
    server.lease(lease())
    until(lambda: kept(competition))
    assert running.stop() is None
    assert server.beats[-1]["leaves"]


def test_it_leaves_also_if_it_ends_by_an_error_of_its_own(
    server: FakeServer, started: Started, lease: Lease, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # the traceback goes there
    monkeypatch.setattr(gradings.Gradings, "begin", lambda *_: {}["no more threads"])
    running = started()
    server.lease(lease())
    assert isinstance(running.wait(60), HarnessError)
    assert server.beats[-1]["leaves"]


@pytest.mark.parametrize(("alone", "at_once"), [(True, 1), (False, 2)])
def test_a_task_alone_has_its_judge_to_itself(
    server: FakeServer, started: Started, lease: Lease, alone: bool, at_once: int
) -> None:
    started(worker := FakeWorker(held, slots=2))
    server.lease(lease("# first\n", 1, alone=alone))
    worker.has(1)
    server.lease(other := lease("# second\n", 2))
    server.until(lambda: other["lease"] in server.held)
    assert len(worker.has(at_once)) == at_once
    worker.answer(worker.handed[0])
    worker.answer(worker.has(2)[1])
    server.answer_to(other)


class Breaks:
    """Judges that fail with a harness error; the kernel of `reference/` ends as the test says."""

    def __init__(self) -> None:
        self.fails, self.tried = True, 0

    def __call__(self, request: JobRequest) -> JobAnswer:
        if request.submission.author != "baseline":
            return JobAnswer.failed(request.run, HarnessError("the device fell off"))
        self.tried += 1
        return JobAnswer.failed(request.run, HarnessError("it is off")) if self.fails else answered(request)


@pytest.fixture
def reference(competition: Path) -> None:
    file = competition / "reference/double/eager.py"
    file.parent.mkdir(parents=True)
    file.write_text("# right\n")


@pytest.mark.usefixtures("reference")
def test_after_harness_errors_of_three_authors_it_tries_its_own_kernel(
    server: FakeServer, started: Started, lease: Lease, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = started(FakeWorker(breaks := Breaks()))

    def three(*authors: str) -> None:
        for author in authors:
            server.lease(leased := lease(f"# {author} {len(server.answers)}\n", len(server.answers) + 1, author=author))
            server.answer_to(leased)

    three("ada", "ada", "ada", "bob")
    assert breaks.tried == 0, "two authors may cause as many as they like"
    three("eve")
    server.until(lambda: server.hellos and server.hellos[-1]["unfit"])
    assert server.hellos[-1]["unfit"] == "it is off"
    claims = len(server.claims)
    breaks.fails = False
    monkeypatch.setattr(gradings, "_TRY_AGAIN_S", 0.0)
    assert len(server.claims) == claims, "it claims nothing"
    running.worker._wake.set()
    server.until(lambda: not server.hellos[-1]["unfit"])
    server.lease(leased := lease("# on\n", 99))
    server.answer_to(leased)
    assert breaks.tried == 2


@pytest.mark.usefixtures("reference")
def test_a_worker_whose_own_kernel_is_right_goes_on(server: FakeServer, started: Started, lease: Lease) -> None:
    started(FakeWorker(breaks := Breaks()))
    breaks.fails = False
    for number, author in enumerate(("ada", "bob", "eve", "dan")):
        server.lease(leased := lease(f"# {author}\n", number, author=author))
        server.answer_to(leased)
    assert breaks.tried == 1
    assert [hello["unfit"] for hello in server.hellos] == [""]


def test_devices_of_two_kinds_are_refused(server: FakeServer, started: Started) -> None:
    error = started(FakeWorker(name="A", gpu="1"), FakeWorker(name="B", gpu="2")).wait()
    assert isinstance(error, UsageError)
    assert "devices of several kinds (A, B)" in str(error)
    assert server.hellos == []


def test_a_full_disk_delays_an_answer_and_loses_none(
    server: FakeServer, started: Started, lease: Lease, monkeypatch: pytest.MonkeyPatch
) -> None:
    full: list[Any] = [OSError(28, "No space left on device")]
    fsync = os.fsync
    monkeypatch.setattr(gradings, "_FULL_S", 0.05)
    monkeypatch.setattr(os, "fsync", lambda file: fsync(file) if not full else (_ for _ in ()).throw(full.pop()))
    started()
    server.lease(leased := lease())
    assert json.dumps(server.answer_to(leased))
    assert full == []
