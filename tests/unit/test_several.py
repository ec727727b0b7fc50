"""Several submissions graded by one command, in a fleet or in this process, and reported in order."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

from harness.errors import HarnessError, LedgerError, SandboxError
from harness.judge import Progress
from harness.kinds import DeviceKind, SandboxName
from harness.problem import load
from harness.verdict import Outcome, Stage, Verdict
from kernelmark.course.gradings import printed
from kernelmark.course.report import GradingResult
from kernelmark.diagnostics.selftest import PROBLEMS, SelfTest, Trial, attacks, attempt_all, honest
from kernelmark.grading.fleet import Job, JobResult, judges, one_by_one
from kernelmark.grading.fleet.fleet import Fleet
from kernelmark.grading.fleet.one_by_one import TESTED_AT_A_TIME, OneByOne, several
from kernelmark.project.settings import Settings
from kernelmark.record import publishing
from leaderboard.record.entry import Entry
from leaderboard.record.ledger import JsonlLedger
from leaderboard.standings.ranking import Table
from tests.documents import items
from tests.repository import commit, init
from tests.unit.conftest import Answering, Command, recorded
from tests.verdicts import REPLAYED, accepted, as_check, failed
from tests.workers import FakeWorker

RIGHT = "def twice(x, y): y.copy_(2 * x)\n"


class Provider:
    """A sandbox that can be used."""

    def __init__(self, name: SandboxName) -> None:
        self.name = name

    def unavailable(self) -> None: ...


class FakeFleet:
    """Grades jobs in reverse order, by what their sources say; remembers how it was made and what it was given."""

    made: ClassVar[list[dict[str, Any]]] = []
    settings: ClassVar[list[Settings]] = []
    given: ClassVar[list[dict[str, Any]]] = []
    taken: ClassVar[list[Job]] = []
    capacity = 6

    def __init__(self, **options: Any) -> None:
        self.settings.append(options.pop("project").settings)
        self.made.append(options)

    def __enter__(self) -> FakeFleet:
        return self

    def __exit__(self, *_: object) -> None: ...

    def start(self) -> None: ...

    def grade_many(self, jobs: Iterable[Job], **options: Any) -> Iterator[JobResult]:
        self.given.append(options)
        for job in reversed(list(jobs)):
            self.taken.append(job)
            own = job.submission
            if b"broken" in own.source:
                yield JobResult(job=job, error=SandboxError("no daemon"))
                continue
            if b"lost" in own.source:
                raise HarnessError("a worker of the fleet did not start")
            if b"interrupted" in own.source:
                raise KeyboardInterrupt
            make: Callable[..., Verdict] = failed if b"wrong" in own.source else accepted
            yield JobResult(job=job, verdict=make(submission=own, problem="double"))

    def check_many(self, jobs: Iterable[Job]) -> Iterator[JobResult]:
        for result in self.grade_many(jobs):
            assert result.verdict is not None
            yield JobResult(job=result.job, check=as_check(result.verdict))


@pytest.fixture
def fakes(monkeypatch: pytest.MonkeyPatch) -> type[FakeFleet]:
    """Fleets that grade nothing, in a sandbox that isolates."""
    for seen in (FakeFleet.made, FakeFleet.settings, FakeFleet.given, FakeFleet.taken):
        seen.clear()
    monkeypatch.setattr(one_by_one, "Fleet", FakeFleet)
    monkeypatch.setattr(one_by_one, "providers", lambda _: [Provider("bwrap")])
    return FakeFleet


@pytest.fixture
def base(competition: Path) -> str:
    (competition / "submissions").mkdir()
    (competition / "submissions/README.md").write_text("put it here\n")
    (competition / "kernelmark.toml").write_text('device = "cpu"\nsandbox = "bwrap"\n')
    return init(competition)


def submitted(**sources: str) -> None:
    commit(Path(), {f"submissions/double/{author}/kernel.py": source for author, source in sources.items()})


@pytest.mark.parametrize(
    ("device", "jobs", "count", "times", "sandbox", "slots"),
    [
        # What is asked for, and how many slots a fleet then has; 0: no fleet.
        ("cuda", None, 5, True, "bwrap", None),
        ("cuda", None, None, False, "docker", None),
        ("cuda", 3, 5, True, "bwrap", 3),
        ("cuda", 1, 5, True, "bwrap", 0),
        ("cuda", None, 1, True, "bwrap", 0),
        ("cuda", None, 0, True, "bwrap", 0),
        ("cuda", 3, 5, True, "process", 0),
        ("cpu", None, 5, True, "bwrap", 0),
        ("cpu", 2, 5, True, "bwrap", 2),
        ("cpu", None, None, False, "bwrap", 3),
        ("cpu", None, None, False, "process", 0),
    ],
)
def test_a_fleet_grades_where_several_may_be_graded_at_a_time(
    fakes: type[FakeFleet],
    monkeypatch: pytest.MonkeyPatch,
    device: DeviceKind,
    jobs: int | None,
    count: int | None,
    times: bool,
    sandbox: SandboxName,
    slots: int | None,
) -> None:
    monkeypatch.setattr(one_by_one, "providers", lambda _: [Provider(sandbox)])
    monkeypatch.setattr(one_by_one, "TESTED_AT_A_TIME", 3)
    settings = Settings()
    with several(settings, device, jobs, count=count, times=times) as grades:
        assert isinstance(grades, OneByOne) == (slots == 0)
    made = {"device": device, "sandbox": sandbox, "slots": slots, "devices": count}
    assert (fakes.made, fakes.settings) == (([], []) if slots == 0 else ([made], [settings]))
    assert 1 <= TESTED_AT_A_TIME <= 8


def test_an_impossible_jobs_option_gets_a_warning(
    fakes: type[FakeFleet], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(one_by_one, "providers", lambda _: [Provider("process")])
    for jobs in (None, 2):
        with several(Settings(), "cuda", jobs, count=2):
            pass
    [message] = caplog.messages
    assert "the sandbox process does not isolate, so submissions are graded one after the other" in message


def test_reports_are_in_order_and_records_at_once(base: str, fakes: type[FakeFleet], command: Command) -> None:
    submitted(ada=RIGHT, bob="# broken\n", eve="# wrong\n", joe=RIGHT, zoe="a\0b")
    result = command("grade", "--changed", base, "--jobs", "3")
    assert result.code == 7
    paths = [line for line in result.out.splitlines() if line.startswith("submissions/double/")]
    assert paths == [f"submissions/double/{author}/kernel.py" for author in ("ada", "bob", "eve", "joe", "zoe")]
    assert "our fault: no daemon" in result.out
    assert [verdict.submission.author for verdict in recorded(Path())] == ["joe", "eve", "ada"]
    assert fakes.made == [{"device": "cpu", "sandbox": "bwrap", "slots": 3, "devices": 4}]
    assert fakes.given == [{"effort": "default", "baselines": ("auto",), "reuse": False}]
    assert result.err.splitlines() == [
        "1/5 submissions/double/zoe/kernel.py: not graded",
        "2/5 submissions/double/joe/kernel.py: accepted",
        "3/5 submissions/double/eve/kernel.py: wrong answer",
        "4/5 submissions/double/bob/kernel.py: our fault",
        "5/5 submissions/double/ada/kernel.py: accepted",
        "5 submissions: 2 accepted, 1 our fault, 1 wrong answer, 1 not graded",
    ]


def test_a_result_that_was_not_recorded_is_reported_without_a_run_id(
    base: str,
    fakes: type[FakeFleet],
    command: Command,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    submitted(ada=RIGHT, bob=RIGHT, eve=RIGHT)
    append = JsonlLedger.append

    def appended(ledger: JsonlLedger, verdict: Verdict, *arguments: Any, **named: Any) -> Entry:
        if verdict.submission.author == "bob":
            raise LedgerError("the disk is full")
        return append(ledger, verdict, *arguments, **named)

    def published(*arguments: Any) -> list[Table]:
        raise HarnessError("the board cannot be written")

    monkeypatch.setattr(JsonlLedger, "append", appended)
    monkeypatch.setattr(publishing, "publish", published)
    result = command("grade", "--changed", base, "--jobs", "3", "--summary", "summary.md")
    assert result.code == 7
    assert "\nnot recorded: the disk is full" in result.out
    assert caplog.text.count("the board cannot be written") == 1
    assert "3 submissions: 2 accepted, 1 accepted but not recorded" in result.err
    rows = [line for line in Path("summary.md").read_text().splitlines() if line.startswith("| sub")]
    runs = [verdict.run for verdict in recorded(Path())]
    assert [sum(run in row for run in runs) for row in rows] == [1, 0, 1], "bob's is not in the ledger"


def test_in_this_process_the_order_is_that_of_the_files(
    competition: Path, base: str, fakes: type[FakeFleet], command: Command, judge: Answering
) -> None:
    (competition / "kernelmark.toml").write_text('device = "cpu"\nsandbox = "process"\n')
    submitted(ada=RIGHT, bob=RIGHT)
    fake = judge(accepted(author="ada"), accepted(author="bob"))
    result = command("grade", "--changed", base, "--no-record")
    assert (result.code, [each[1].author for each in fake.asked]) == (0, ["ada", "bob"])
    assert fakes.made == []
    first = ["test: 2 cases", "1/2 submissions/double/ada/kernel.py: accepted"]
    last = ["2/2 submissions/double/bob/kernel.py: accepted", "2 submissions: 2 accepted"]
    assert result.err.splitlines() == [*first, "test: 2 cases", *last]


def test_where_the_fleet_fails_the_rest_is_our_fault(base: str, fakes: type[FakeFleet], command: Command) -> None:
    submitted(ada=RIGHT, bob="# lost\n", eve=RIGHT)
    result = command("grade", "--changed", base, "--jobs", "2", "--format", "json")
    assert [(item["exit_code"], item["verdict"] is None) for item in items(result.out)] == [
        (7, True), (7, True), (0, False),
    ]  # fmt: skip
    assert items(result.out)[0]["message"] == "a worker of the fleet did not start"


@pytest.mark.full
def test_samples_of_all_problems_share_a_fleet(competition: Path, fakes: type[FakeFleet], command: Command) -> None:
    folder = competition / "problems/double/samples"
    folder.mkdir()
    (folder / "right.py").write_text(RIGHT)
    table = '[{}]\nfile = "right.py"\nreplace = {{ "2" = "2{}" }}\noutcome = "{}"\n'
    expected = (("a", "", "accepted"), ("b", "# wrong", "accepted"), ("c", "# wrong", "wrong_answer"))
    (folder / "expected.toml").write_text("".join(table.format(*each) for each in expected))
    result = command("problems", "lint", "--sandbox", "bwrap", "--jobs", "2", "--format", "json")
    [report] = items(result.out)
    [finding] = [each for each in report["findings"] if each["level"] == "error"]
    assert finding["what"].startswith("sample `b` is wrong_answer, where accepted is expected")
    assert (result.code, report["samples"]) == (2, 3)
    assert [name for job in fakes.taken for name in [job.submission.name]] == ["c.py", "b.py", "a.py"]  # type: ignore[union-attr]
    assert "1/3 double: sample c: wrong_answer" in result.err
    fakes.made.clear()
    assert command("problems", "lint", "--sandbox", "bwrap", "--no-samples").code == 0
    assert fakes.made == []


def test_a_report_held_back_by_an_earlier_one_is_printed_at_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    results = printed(((place, GradingResult(f"{place}.py", 0, "")) for place in (3, 1, 0)), "table")
    assert [next(results)[0] for _ in range(3)] == [3, 1, 0]
    assert capsys.readouterr().out == "0.py\n\n1.py\n\n"
    assert list(results) == []
    assert capsys.readouterr().out == "3.py\n\n"


def test_a_parallel_self_test_makes_the_same_requests(fakes: type[FakeFleet], monkeypatch: pytest.MonkeyPatch) -> None:
    """Each case as often as it wants, a twin once, under the author and the name that may be the attack."""
    cases = [attack for attack in attacks() if "cuda" in attack.devices and attack.twin == "torch_mul"]
    twin = next(each for each in honest() if each.label == "torch_mul")

    class OnGpu(FakeFleet):
        def grade_many(self, jobs: Iterable[Job], **options: Any) -> Iterator[JobResult]:
            assert options == {"effort": "quick", "baselines": ()}
            for job in jobs:
                seen.append(job)
                yield JobResult(job=job, verdict=accepted(modes=REPLAYED))

    class Alone(OneByOne):
        def grade_many(self, jobs: Iterable[Job], **_: Any) -> Iterator[JobResult]:
            for job in jobs:
                asked.append(job)
                yield JobResult(job=job, verdict=accepted(modes=REPLAYED))

    seen: list[Job] = []
    asked: list[Job] = []
    monkeypatch.setattr(one_by_one, "Fleet", OnGpu)
    monkeypatch.setattr(one_by_one, "providers", lambda _: [Provider("docker")])
    reported: list[Trial] = []
    trials = attempt_all(Settings(), [(each, "cuda", "docker") for each in (*cases, twin)], None, reported.append)
    assert [trial.case for trial in trials] == [*cases, twin]
    assert sorted(trial.case.label for trial in reported) == sorted(trial.case.label for trial in trials)
    assert fakes.made == [{"device": "cuda", "sandbox": "docker", "slots": None, "devices": 1}]
    attempts = SelfTest(lambda *_: Alone(Settings()))
    assert trials == [attempts.attempt(each, "cuda", "docker") for each in (*cases, twin)]
    assert any(case.gradings > 1 for case in cases)

    def by_name(job: Job) -> tuple[str, str]:
        return job.submission.name, job.submission.author

    assert sorted(seen, key=by_name) == sorted(asked, key=by_name)


def test_an_interrupted_self_test_waits_for_no_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    class Interrupted(FakeFleet):
        """The first trial ends with an interruption, while the others wait until the fleet is closed."""

        def __init__(self, **_: Any) -> None:
            self.closed = threading.Event()

        def __exit__(self, *_: object) -> None:
            self.closed.set()

        def grade_many(self, jobs: Iterable[Job], **_: Any) -> Iterator[JobResult]:
            [job] = jobs
            if job.submission.name.startswith(cases[0].label):
                raise KeyboardInterrupt
            assert self.closed.wait(60)
            yield JobResult(job=job, error=HarnessError("the fleet was closed"))

    monkeypatch.setattr(one_by_one, "Fleet", Interrupted)
    monkeypatch.setattr(one_by_one, "providers", lambda _: [Provider("docker")])
    cases = [each for each in honest() if "cuda" in each.devices]
    tried: list[Trial] = []
    with pytest.raises(KeyboardInterrupt):
        attempt_all(Settings(), [(case, "cuda", "docker") for case in cases], 4, tried.append)
    assert len(tried) < len(cases), "those that had not begun did not begin"


def test_on_a_cpu_the_self_test_is_one_case_after_the_other(command: Command) -> None:
    result = command("audit", "--self-test", "--sandbox", "bwrap", "--only", "torch_mul", "--jobs", "2")
    assert result.code == 2
    assert "--jobs 2: the self-test tries one case at a time on a CPU" in result.err
    assert command("audit", "--top", "1", "--jobs", "2").code == 2


@pytest.mark.parametrize(("reuse", "graded"), [(True, 1), (False, 3)])
def test_reuse_can_be_turned_off(competition: Path, monkeypatch: pytest.MonkeyPatch, reuse: bool, graded: int) -> None:
    workers = [FakeWorker(slots=2), FakeWorker(slots=2)]
    monkeypatch.setattr(judges, "local_workers", lambda *_, devices: workers[:devices])
    monkeypatch.setattr(judges, "providers", lambda _: [Provider("bwrap")])
    jobs = [Job(problem=load(PROBLEMS / "double"), submission=RIGHT, key=key) for key in range(3)]
    with Fleet(sandbox="bwrap", devices=1) as one:
        results = list(one.grade_many(jobs, reuse=reuse))
        assert one.capacity == 6
    assert sorted(result.job.key for result in results) == [0, 1, 2]  # type: ignore[type-var]
    assert [len(worker.handed) for worker in workers] == [graded, 0]
    assert sum(result.duplicate for result in results) == 3 - graded


def test_one_failure_stops_no_other(competition: Path, judge: Answering, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = judge(ZeroDivisionError("a mistake of ours"), accepted(), failed(Outcome.WRONG_ANSWER))
    steps: list[Progress] = []
    monkeypatch.setenv("KERNELMARK_DEBUG", "1")
    grades = OneByOne(Settings.load(), steps.append)
    jobs = [Job(problem="double", submission=RIGHT, key=key) for key in range(2)]
    one, two = grades.grade_many(jobs, effort="quick", baselines=())
    assert str(one.error) == "unexpected ZeroDivisionError: a mistake of ours; the traceback is above"
    assert two.verdict is not None
    [three] = grades.check_many([Job(problem="nothing", submission=RIGHT)])
    assert three.error is not None
    [four] = grades.check_many(jobs[:1])
    assert four.check.outcome is Outcome.WRONG_ANSWER
    assert len(fake.asked) == 3
    assert [step.stage for step in steps] == [Stage.TEST] * 3
