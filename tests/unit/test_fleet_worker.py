"""A worker's threads, with graders that give prepared answers: what it answers, what it times once, how it stops."""

from __future__ import annotations

import errno
import itertools
import os
import queue
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock, create_autospec

import pytest

from harness.device import DEVICES
from harness.errors import DeviceError, HarnessError, ProblemError, SandboxError, UsageError
from harness.judge import Progress, Setup
from harness.judge.device_memory import lacked_memory
from harness.judge.session.builds import CompilerTurn
from harness.problem import load
from harness.submission import Submission
from harness.verdict import Check, DeviceKind, Outcome, Stage, Verdict
from kernelmark.grading import setup
from kernelmark.grading.fleet import worker as module
from kernelmark.grading.fleet.messages import AHEAD, JobAnswer, JobProgress, JobRequest, WorkerReady
from kernelmark.grading.fleet.watchdog import Watchdog
from kernelmark.grading.fleet.worker import Worker
from tests import workers
from tests.verdicts import REPLAYED, accepted, as_check, failed
from tests.workers import until

KERNEL_NS, BASELINE_NS = 50_000, 100_000
RUNS = [f"{number:016x}" for number in range(20)]


class Graders:
    """Stands for the class `Grader`: what its graders do is in `does`, by source, and applies to all tries."""

    def __init__(self) -> None:
        self.does: dict[str, Callable[[], Verdict | None]] = {}
        self.builds: dict[str, Callable[[], object]] = {}
        self.made: list[FakeGrader] = []
        self.graded: list[str] = []
        self.short: set[str] = set()
        self.at_once = self.most_at_once = 0
        self.lock = threading.Lock()

    def __call__(self, setup: Setup) -> FakeGrader:
        with self.lock:
            self.made.append(FakeGrader(self, setup))
        return self.made[-1]


class FakeGrader:
    def __init__(self, all_of_them: Graders, setup: Setup) -> None:
        self._all, self.setup = all_of_them, setup
        self.used, self.closed = False, threading.Event()
        self.built = False
        self.alone = self.memory_was_short = False
        self.sandboxes = 2 * (1 + len(setup.baselines))

    def build(self, turn: CompilerTurn, *, triton: bool) -> None:
        if act := self._all.builds.get(self.setup.submission.source.decode().strip()):
            with turn(1):
                act()
        self.built = True

    def start(self) -> None:
        assert self.built
        self.used = True

    def wait(self) -> None: ...

    def close(self) -> None:
        self.closed.set()

    def lacked_memory(self, verdict: Check) -> bool:
        return self.memory_was_short or lacked_memory(verdict)

    def grade(self, *, alone: bool = False) -> Verdict:
        assert self.built
        self.alone = alone
        self.setup.on_progress(Progress(Stage.TEST, 0, 1, "a test"))
        source, all_of_them, self.used = self.setup.submission.source.decode().strip(), self._all, True
        with all_of_them.lock:
            all_of_them.graded.append(source)
            all_of_them.at_once += 1
            all_of_them.most_at_once = max(all_of_them.most_at_once, all_of_them.at_once)
        try:
            special = all_of_them.does.get(source, lambda: None)()
            self.memory_was_short = special is not None and source in all_of_them.short
        finally:
            with all_of_them.lock:
                all_of_them.at_once -= 1
        if special is not None:
            return special
        score_ns = BASELINE_NS if self.setup.submission.author == "baseline" else KERNEL_NS
        fields = {"run": self.setup.run, "problem": self.setup.problem.slug, "effort": self.setup.effort}
        return accepted(name=self.setup.submission.name, score_ns=score_ns, **fields)

    def check(self) -> Check:
        return as_check(self.grade())


class Answers(queue.Queue[JobAnswer]):
    def __call__(self, answer: JobAnswer) -> None:
        self.put(answer)

    def take(self, count: int) -> dict[str, JobAnswer]:
        return {answer.run: answer for answer in (self.one() for _ in range(count))}

    def one(self) -> JobAnswer:
        return self.get(timeout=20)

    def none_within(self, seconds: float) -> bool:
        time.sleep(seconds)
        return self.empty()


@pytest.fixture
def graders(monkeypatch: pytest.MonkeyPatch) -> Graders:
    fake = Graders()
    monkeypatch.setattr(setup, "Grader", fake)
    return fake


@pytest.fixture
def answers() -> Answers:
    return Answers()


@pytest.fixture
def references(competition: Path) -> None:
    folder = competition / "reference/double"
    folder.mkdir(parents=True)
    for name in ("eager", "other"):
        (folder / f"{name}.py").write_text(f"# {name}\n")


@pytest.fixture
def worker(competition: Path, references: None, graders: Graders, answers: Answers) -> Iterator[Worker]:
    made = Worker(competition, "cpu", 2, answers)
    yield made
    made.stop()


def request(source: str = "mine", run: str = RUNS[0], **changes: Any) -> JobRequest:
    fields = {"problem_sha256": load(Path("problems/double")).sha256, "sandbox": "process", **changes}
    return workers.request(Submission.of(f"# {source}\n", "py", author="ada", name="k.py"), run, **fields)


def in_turn(*given: BaseException | Verdict) -> Callable[[], Verdict | None]:
    """Raises or returns these in turn, then returns nothing."""
    return Mock(side_effect=itertools.chain(given, itertools.repeat(None)))


def test_a_verdict_has_the_run_that_the_dispatcher_drew(worker: Worker, graders: Graders, answers: Answers) -> None:
    worker.take(request(run="0123456789abcdef", effort="thorough", baselines=("eager",)))
    answer = answers.one()
    assert (answer.run, answer.verdict.run, answer.verdict.effort) == ("0123456789abcdef",) * 2 + ("thorough",)
    [grader] = graders.made
    assert [baseline.source for baseline in grader.setup.baselines] == [b"# eager\n"], "beside those it alternates with"
    assert grader.closed.is_set()


@pytest.mark.parametrize("timed", [True, False])
def test_a_request_controls_steps_and_hidden(worker: Worker, graders: Graders, answers: Answers, timed: bool) -> None:
    worker.take(request(run=RUNS[0], timed=timed, progress=True, hidden=False))
    assert answers.one() == JobProgress(run=RUNS[0], step=Progress(Stage.TEST, 0, 1, "a test"))
    assert answers.one().error == ""
    worker.take(request(run=RUNS[0], timed=timed))
    assert isinstance(answers.one(), JobAnswer), "this one did not ask for it"
    assert [grader.setup.hidden for grader in graders.made] == [False, True]


@pytest.mark.parametrize("timed", [True, False])
@pytest.mark.parametrize(
    ("failures", "kind", "message"),
    [
        ([UsageError("kernel.cu", "does not run on a CPU", "use a GPU")], "UsageError", "kernel.cu does not run"),
        ([ProblemError("reference.py:3", "raised ValueError")], "ProblemError", "reference.py:3 raised"),
        ([SandboxError("first"), DeviceError("second")], "DeviceError", "second"),
        ([SandboxError("first"), ZeroDivisionError()], "HarnessError", "unexpected ZeroDivisionError: ;"),
        ([ZeroDivisionError("by 0")], "HarnessError", "unexpected ZeroDivisionError: by 0;"),
    ],
    ids=lambda value: None if isinstance(value, list) else str(value),
)  # fmt: skip
def test_an_error_is_an_answer_with_its_class(
    worker: Worker,
    graders: Graders,
    answers: Answers,
    failures: Any,
    kind: str,
    message: str,
    timed: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("KERNELMARK_DEBUG", "1")  # the traceback is printed, and not kept in a file
    graders.does["# bad"] = in_turn(*failures)
    worker.take(request("bad", RUNS[1], timed=timed))
    worker.take(request("good", RUNS[2], timed=timed))
    got = answers.take(2)
    assert (got[RUNS[1]].error_class, got[RUNS[1]].verdict) == (kind, None)
    assert str(got[RUNS[1]].failure()).startswith(message)
    made = Verdict if timed else Check
    assert type(got[RUNS[2]].verdict or got[RUNS[2]].check) is made, "one job's failure is no other's"
    assert all(grader.closed.is_set() for grader in graders.made)
    assert graders.graded.count("# bad") == len(failures), "ours are tried twice, the user's once"


def test_our_failure_is_tried_once_more_in_new_sandboxes(worker: Worker, graders: Graders, answers: Answers) -> None:
    graders.does["# mine"] = in_turn(SandboxError("transient"))
    worker.take(request())
    answer = answers.one()
    assert answer.verdict is not None
    assert len(graders.made) == 2


def test_other_versions_are_refused(worker: Worker, graders: Graders, answers: Answers, competition: Path) -> None:
    worker.take(request(problem_sha256="0" * 64))
    refused = answers.one()
    assert refused.error_class == "ProblemError"
    assert "use the same version of the project on all machines" in str(refused.failure())
    assert graders.made == []
    for problem in ("trebble", str(competition / "nowhere")):
        worker.take(request(problem=problem))
        assert issubclass(type(answers.one().failure()), UsageError)
    worker.take(request(problem=str(competition / "problems/double")))
    assert answers.one().verdict is not None


def test_a_mistake_in_the_settings_changes_nothing_until_it_is_put_right(
    worker: Worker, answers: Answers, competition: Path
) -> None:
    good = (file := competition / "kernelmark.toml").read_text()
    file.write_text("[limits\n")
    worker.take(request())
    assert answers.one().verdict is not None
    fresh = Worker(competition, "cpu", 1, answers)
    fresh.take(request(run=RUNS[1]))
    assert answers.one().error_class == "SettingsError"
    file.write_text(good)
    fresh.take(request(run=RUNS[2]))
    assert answers.one().verdict is not None
    fresh.stop()


def test_no_more_are_graded_at_once_than_there_are_slots(worker: Worker, graders: Graders, answers: Answers) -> None:
    goes_on = threading.Event()
    for number in range(2 + AHEAD + 3):
        graders.does[f"# {number}"] = lambda: goes_on.wait(10) and None
        worker.take(request(str(number), RUNS[number]))
    until(lambda: len(graders.made) >= 2 + AHEAD and graders.at_once >= 2)
    time.sleep(0.2)
    assert (graders.at_once, len(graders.made)) == (2, 2 + AHEAD), "the sandboxes of some start ahead"
    goes_on.set()
    assert len(answers.take(2 + AHEAD + 3)) == 2 + AHEAD + 3
    assert graders.most_at_once == 2


def test_builds_take_no_slot_but_a_processor_each(worker: Worker, graders: Graders, answers: Answers) -> None:
    goes_on, building, count = threading.Event(), list[int](), 2 + AHEAD - 1
    for number in range(count):
        graders.builds[f"# {number}"] = lambda number=number: building.append(number) or goes_on.wait(10)
        worker.take(request(str(number), RUNS[number]))
    expected = min(count, len(os.sched_getaffinity(0)))
    until(lambda: len(building) == expected)
    worker.take(request("built", RUNS[-1]))
    assert answers.one().run == RUNS[-1], "it need not wait for them"
    assert len(building) == expected
    goes_on.set()
    assert len(answers.take(count)) == len(building) == count


def test_jobs_with_baselines_are_fewer_at_a_time_where_contexts_take_memory(
    competition: Path, references: None, graders: Graders, answers: Answers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(DEVICES["cpu"]), "free_bytes", lambda _: 10 << 30)  # for 6 sandboxes
    worker = Worker(competition, "cpu", 4, answers)
    for number in range(6):
        graders.does[f"# {number}"] = lambda: time.sleep(0.2)
        worker.take(request(str(number), RUNS[number], baselines=("eager",)))
    assert [answer.error for answer in answers.take(6).values()] == [""] * 6
    assert graders.most_at_once == 1

    def with_two_others() -> None:
        until(lambda: graders.most_at_once >= 3)
        time.sleep(0.2)  # in which a fourth would come

    for number in range(6, 12):
        graders.does[f"# {number}"] = with_two_others
        worker.take(request(str(number), RUNS[number]))
    answers.take(6)
    assert graders.most_at_once == 3
    worker.take(request("large", RUNS[12], baselines=("eager", "other")))
    assert answers.one().verdict is not None
    worker.stop()


def screened(worker: Worker, answers: Answers, *runs: str, **changes: Any) -> list[JobAnswer]:
    for run in runs:
        worker.take(request(run, run, effort="screen", **{"baselines": ("eager",), **changes}))
    return list(answers.take(len(runs)).values())


def speedups(answer: JobAnswer) -> list[tuple[str, float, bool]]:
    assert answer.verdict is not None, answer.error
    return [(speedup.baseline, round(speedup.ratio.median, 6), speedup.known) for speedup in answer.verdict.speedups]


def test_a_screens_baselines_are_timed_once_by_the_worker(worker: Worker, graders: Graders, answers: Answers) -> None:
    graders.does["# eager"] = lambda: time.sleep(0.2)  # so that others want it meanwhile
    got = [*screened(worker, answers, *RUNS[:6]), *screened(worker, answers, *RUNS[6:8])]
    assert {tuple(speedups(result)) for result in got} == {(("eager", BASELINE_NS / KERNEL_NS, True),)}
    assert Counter(graders.graded)["# eager"] == 1
    assert all(grader.setup.baselines == [] for grader in graders.made), "nothing alternates with the submission"
    [both] = screened(worker, answers, RUNS[8], baselines=("eager", "other"))
    assert [speedup[0] for speedup in speedups(both)] == ["eager", "other"]
    assert (Counter(graders.graded)["# eager"], Counter(graders.graded)["# other"]) == (1, 1)


def test_changed_problems_need_new_times(worker: Worker, graders: Graders, answers: Answers, competition: Path) -> None:
    screened(worker, answers, RUNS[0])
    file = competition / "problems/double/problem.toml"
    file.write_text(file.read_text().replace("1_000_000", "2_000_000"))
    screened(worker, answers, RUNS[1])
    assert Counter(graders.graded)["# eager"] == 2


def test_baselines_are_timed_only_for_accepted_screens(worker: Worker, graders: Graders, answers: Answers) -> None:
    graders.does[f"# {RUNS[0]}"] = in_turn(failed(Outcome.WRONG_ANSWER, problem="double"))
    [wrong] = screened(worker, answers, RUNS[0])
    assert wrong.verdict.outcome is Outcome.WRONG_ANSWER
    worker.take(request(effort="quick", baselines=("eager",)))
    answers.one()
    assert Counter(graders.graded)["# eager"] == 0


def test_a_wrong_baseline_has_no_speedup_and_is_not_retried(worker: Worker, graders: Graders, answers: Answers) -> None:
    graders.does["# eager"] = in_turn(failed(Outcome.WRONG_ANSWER, problem="double"))
    got = screened(worker, answers, *RUNS[:3])
    assert [speedups(result) for result in got] == [[]] * 3
    assert Counter(graders.graded)["# eager"] == 1
    texts = {doubt.text for result in got if result.verdict for doubt in result.verdict.doubts}
    assert texts == {"baseline eager: wrong answer: it is not right"}
    assert {result.verdict.requested_baselines for result in got if result.verdict} == {("eager",)}


def test_a_baseline_timed_by_another_method_is_reported(worker: Worker, graders: Graders, answers: Answers) -> None:
    graders.does["# eager"] = in_turn(accepted(name="eager.py", problem="double", modes=REPLAYED))
    [got] = screened(worker, answers, RUNS[0], baselines=("eager", "other"))
    assert [speedup[0] for speedup in speedups(got)] == ["other"]
    [doubt] = got.verdict.doubts
    assert doubt.text.startswith("baseline eager: its time is one of replayed, and the submission's one of ")


def test_a_failed_baseline_is_reported_to_all_waiting_jobs_and_retried(
    worker: Worker, graders: Graders, answers: Answers
) -> None:
    errors, asked = [SandboxError("once"), SandboxError("twice")], list[object]()

    class Known(dict[Any, Any]):
        def setdefault(self, key: object, default: object = None) -> Any:
            asked.append(key)
            return super().setdefault(key, default)

    worker._baselines._known = Known()

    def fails() -> None:
        until(lambda: len(asked) >= 2)  # the other one waits for what comes of this
        if errors:
            raise errors.pop(0)

    graders.does["# eager"] = fails
    for got in screened(worker, answers, *RUNS[:2]):
        assert speedups(got) == []
        assert [(doubt.code, "twice" in doubt.text) for doubt in got.verdict.doubts] == [("no_baseline", True)]
    assert Counter(graders.graded)["# eager"] == 2
    [later] = screened(worker, answers, RUNS[2])
    assert speedups(later) == [("eager", BASELINE_NS / KERNEL_NS, True)]
    assert Counter(graders.graded)["# eager"] == 3


def on(device: DeviceKind, verdict: Verdict, **changes: Any) -> Verdict:
    where = verdict.environment.model_copy(update={"device_kind": device})
    return verdict.model_copy(update={"environment": where, **changes})


NO_MEMORY = {"traceback": "torch.OutOfMemoryError: CUDA out of memory."}


@pytest.mark.parametrize("also_alone", [False, True], ids=["is right alone", "fails alone as well"])
@pytest.mark.parametrize(
    ("verdict", "short", "again"),
    [
        (on("cuda", failed(Outcome.MEMORY_LIMIT)), False, True),
        (on("cuda", failed(Outcome.RUNTIME_ERROR), **NO_MEMORY), False, True),
        (on("cuda", failed(Outcome.RUNTIME_ERROR), message="CUBLAS_STATUS_ALLOC_FAILED"), False, True),
        (on("cuda", failed(Outcome.COMPILE_ERROR), log="cuda error 2: Out of memory"), False, True),
        (on("cuda", failed(Outcome.WRONG_ANSWER)), True, True),
        (on("cuda", failed(Outcome.WRONG_ANSWER)), False, False),
        (on("cuda", accepted(), **NO_MEMORY), False, False),
        (on("cpu", failed(Outcome.MEMORY_LIMIT)), False, False),
    ],
    ids=["limit", "error", "library", "build", "wrong and short", "wrong", "accepted", "on a CPU"],
)
def test_a_job_that_failed_while_memory_was_short_is_graded_alone(
    worker: Worker, graders: Graders, answers: Answers, verdict: Verdict, short: bool, again: bool, also_alone: bool
) -> None:
    graders.does["# mine"] = in_turn(*[verdict] * (1 + also_alone))
    graders.short |= {"# mine"} if short else set()
    worker.take(request())
    outcome = answers.one().verdict.outcome
    assert [grader.alone for grader in graders.made] == ([False, True] if again else [False])
    assert outcome == (Outcome.ACCEPTED if again and not also_alone else verdict.outcome), "the last one counts"


def test_the_watchdog_learns_of_steps_until_the_last(competition: Path, graders: Graders, answers: Answers) -> None:
    watchdog = create_autospec(Watchdog, instance=True)
    worker = Worker(competition, "cpu", 1, answers, watchdog)
    goes_on = threading.Event()
    graders.does["# first"] = lambda: goes_on.wait(10) and None
    worker.take(request("first", RUNS[0]))
    until(lambda: graders.at_once == 1)
    worker.take(request("second", RUNS[1]))
    until(lambda: watchdog.expect.call_count == 2)
    # Each arrives, each has a grader; the first makes progress.
    assert Counter(name for name, *_ in watchdog.method_calls) == {"reset": 3, "expect": 2}
    assert {given.slug for (given,) in (call.args for call in watchdog.expect.mock_calls)} == {"double"}
    goes_on.set()
    answers.take(2)
    assert Counter(name for name, *_ in watchdog.method_calls) == {"reset": 5, "expect": 2, "stop": 1}
    assert watchdog.method_calls[-1][0] == "stop"
    worker.stop()


@pytest.mark.parametrize("timed", [True, False])
def test_a_cancelled_job_ends_alone_wherever_it_is(
    worker: Worker, graders: Graders, answers: Answers, timed: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """Graded, or waiting for a slot; its sandboxes end, it is not tried again, and the next job has its place."""

    def grading() -> None:
        grader = next(grader for grader in graders.made if grader.setup.submission.source == b"# graded\n")
        assert grader.closed.wait(10)
        raise SandboxError("the sandbox has gone")

    goes_on = threading.Event()
    graders.does = {"# graded": grading, "# beside": lambda: goes_on.wait(10) and None}
    for number, source in enumerate(("graded", "beside", "waiting", "next")):
        worker.take(request(source, RUNS[number], timed=timed))
        until(lambda number=number: len(graders.made) > number)
    until(lambda: graders.at_once == 2)
    worker.cancel(RUNS[2])
    until(graders.made[2].closed.is_set)
    worker.cancel(RUNS[0])
    ended = answers.take(3)
    assert {run: answer.error for run, answer in ended.items()} == {
        RUNS[0]: "it was cancelled", RUNS[2]: "it was cancelled", RUNS[3]: "",
    }  # fmt: skip
    goes_on.set()
    assert answers.one().error == ""
    assert sorted(graders.graded) == ["# beside", "# graded", "# next"]
    worker.cancel(RUNS[0])
    worker.take(request("again", RUNS[0], timed=timed))
    assert answers.one().error == "", "it is forgotten"
    assert "trying once more" not in caplog.text


@pytest.mark.parametrize("timed", [True, False])
def test_stopping_ends_the_sandboxes_of_all_jobs_and_begins_no_other(
    worker: Worker,
    graders: Graders,
    answers: Answers,
    timed: bool,
    caplog: pytest.LogCaptureFixture,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A grading that waits for its turn must not begin while the worker ends: its sandbox would be left behind."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    jobs, errors = 2 + AHEAD + 2, iter((HarnessError("its sandbox was ended"), OSError(errno.EBADF, "a closed socket")))

    def until_closed() -> None:
        assert graders.made[0].closed.wait(10)
        raise next(errors)

    for number in range(jobs):
        graders.does[f"# {number}"] = until_closed
        worker.take(request(str(number), RUNS[number], timed=timed))
    until(lambda: graders.at_once >= 2)
    worker.stop()
    until(lambda: graders.at_once == 0)
    assert answers.none_within(0.5), "nobody waits for them"
    assert len(graders.graded) == 2, "neither those that waited nor those that failed begin"
    assert all(grader.closed.is_set() for grader in graders.made if grader.used)
    worker.take(request("late", RUNS[-1], timed=timed))
    assert answers.none_within(0.2)
    assert len(graders.graded) == 2
    assert caplog.records == [], "nothing is tried again"
    assert list(tmp_path.glob("kernelmark-*")) == [], "no traceback is kept"


def test_a_truncated_request_ends_the_sandboxes(worker: Worker, graders: Graders) -> None:
    """A dispatcher that is killed while it writes leaves an incomplete line."""

    def until_closed() -> None:
        assert graders.made[0].closed.wait(10)

    def requests() -> Iterator[bytes]:
        yield request().line()
        until(lambda: graders.at_once == 1)
        yield request(run=RUNS[1]).line()[:-20]

    graders.does["# mine"] = until_closed
    module._serve(worker, requests(), lambda ready: None, WorkerReady(device="", slots=1))
    assert graders.made[0].closed.is_set()
    assert len(graders.made) == 1


def test_the_dispatchers_clock_decides_about_final_tests(
    worker: Worker, competition: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A problem that closes between dispatcher and worker is graded as the dispatcher read it."""
    private = tmp_path / "private"
    private.mkdir()
    monkeypatch.setenv("KERNELMARK_PRIVATE_CASES", str(private))
    (private / "double.final.toml").write_text(
        f'salt = "{"0" * 32}"\n[[tests]]\nname = "last"\nparams = {{ n = 99 }}\n'
    )
    toml = competition / "problems/double/problem.toml"
    toml.write_text("deadline = 2020-01-01T00:00:00Z\n" + toml.read_text())
    hashes = {final: load(toml.parent, private, final).sha256 for final in (False, True)}
    assert hashes[True] == load(toml.parent, private).sha256 != hashes[False]
    for final, sha256 in hashes.items():
        _, prepared_job = worker._prepare(request(problem_sha256=sha256, final=final))
        assert prepared_job.problem.sha256 == sha256
        assert bool(prepared_job.problem.final_tests) is final
