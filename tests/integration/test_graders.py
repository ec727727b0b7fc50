"""A grading's sandboxes: when they start, and that they end, whatever happens. The runners are scripted."""

from __future__ import annotations

import shutil
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import Mock

import pytest

from harness.errors import HarnessError, SandboxError
from harness.judge import Grader, Setup
from harness.judge.device_memory import DeviceMemory
from harness.judge.grading import Grading
from harness.judge.session import Session, Sessions, SubmissionFault
from harness.judge.timing import device_lock
from harness.judge.timing.replayed.launcher import RecordedCall
from harness.judge.timing.replayed.timing import ReplayedTiming
from harness.problem import Case, Problem, load
from harness.problem.reference import Reference
from harness.recording.file import Packed
from harness.sandbox import Launch
from harness.submission import Submission
from harness.verdict import Outcome, Verdict
from kernelmark.diagnostics.selftest import PROBLEMS
from tests.integration.test_sandboxes import eventually
from tests.open_files import open_files
from tests.runners import Script, Scripted, answering, but, doubling
from tests.verdicts import accepted, failed

SUBMISSION = Submission.of("def twice(x, y): ...", "py", author="tester")


@pytest.fixture(scope="module")
def problem() -> Problem:
    short = Case(name="short", params={"n": 30_000})
    return load(PROBLEMS / "double").model_copy(update={"benchmarks": (short,)})


@pytest.fixture(autouse=True)
def nothing_stays(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Neither files nor descriptors; other gradings on this machine are nobody's neighbours."""
    folder = Path(tempfile.mkdtemp(prefix="gr-"))  # a short name, as that of a socket must be
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setattr(device_lock, "_DIRECTORY", folder)
    before = opened()
    yield
    assert [path.name for path in folder.iterdir() if path.suffix != ".lock"] == []
    # The scripted runners end by themselves; those of a test of another file may have been open before.
    eventually(lambda: not opened() - before or None)
    shutil.rmtree(folder)


def opened() -> Counter[str]:
    """What a session opens, and not what a library does when it is first used."""
    kinds = ("socket:", "pipe:", "/memfd:", "anon_inode:")
    return Counter({name: count for name, count in open_files().items() if name.startswith(kinds)})


class Counted(Scripted):
    """Counts launches and ends; the launch of one number fails."""

    def __init__(self, act: Any = None, *, fails: int = -1) -> None:
        super().__init__(act or doubling(), on_close=self._closed)
        self.roles: list[str] = []
        self.environments: list[Mapping[str, str]] = []
        self.ended, self._fails, self._lock = 0, fails, threading.Lock()

    def launch(self, launch: Launch) -> Any:
        with self._lock:
            self.roles.append(launch.role)
            self.environments.append(launch.environment)
            number = len(self.roles) - 1
        if number == self._fails:
            raise SandboxError("it could not be launched")
        return super().launch(launch)

    def _closed(self) -> None:
        with self._lock:
            self.ended += 1


def prepared(_: Grading, session: Session, timing: ReplayedTiming) -> str:
    """Instead of a grading: as if the submission's call had parts that run side by side."""
    packed = cast(Packed, SimpleNamespace(recording=SimpleNamespace(overlaps=True)))
    timing._launcher.prepare(RecordedCall(b"", packed, None, "", {}))
    return "up"


def grader(problem: Problem, provider: Scripted, **options: Any) -> Grader:
    return Grader(Setup(problem, SUBMISSION, provider=provider, device="cpu", effort="quick", **options))


def test_a_grading_ends_its_sandboxes_before_it_returns(problem: Problem) -> None:
    provider = Counted()
    with grader(problem, provider, run="0123456789abcdef", baselines=[SUBMISSION]) as one:
        one.start()
        one.wait()
        assert provider.roles == [], "on a CPU a start would disturb the grading that is being timed"
        verdict = one.grade()
        assert provider.roles == ["runner"] * 2, "plain calls need no launchers"
        assert provider.ended == 2
        one.close()
    assert (verdict.outcome, verdict.run) == (Outcome.ACCEPTED, "0123456789abcdef"), verdict.message
    assert provider.ended == 2


def test_a_check_ends_when_it_is_closed(problem: Problem) -> None:
    provider = Counted()
    with grader(problem, provider, baselines=[SUBMISSION]) as one:
        assert one.check().outcome is Outcome.ACCEPTED
    assert provider.ended == len(provider.roles)


@pytest.mark.parametrize("short", [True, False])
@pytest.mark.parametrize("ends", ["wrong", "gone", "right"])
def test_a_failure_while_memory_was_short_is_told(
    problem: Problem, ends: str, short: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(*_: object) -> None:
        raise OSError

    calls = {"wrong": {"Call": answering("Done")}, "gone": {"Call": gone}, "right": {}}
    monkeypatch.setattr(DeviceMemory, "is_short", lambda _: short)
    first = grader(problem, Counted(but(doubling(), **calls[ends])))
    checked = first.check()
    assert (checked.outcome is Outcome.ACCEPTED) == (ends == "right")
    assert first.lacked_memory(checked) == (short and ends != "right")
    first.close()


@pytest.mark.parametrize(
    ("outcome", "baselines", "alone", "attempts"),
    [
        (Outcome.MEMORY_LIMIT, [SUBMISSION], False, [False, True]),
        (Outcome.MEMORY_LIMIT, [SUBMISSION], True, [True]),
        (Outcome.MEMORY_LIMIT, [], False, [False]),
        (Outcome.WRONG_ANSWER, [SUBMISSION], False, [False]),
    ],
)
def test_what_lacked_memory_beside_a_baseline_is_graded_with_nothing_beside_it(
    problem: Problem,
    outcome: Outcome,
    baselines: list[Submission],
    alone: bool,
    attempts: list[bool],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tried: list[bool] = []

    def replayed(_: Grader, *, alone: bool) -> Verdict:
        tried.append(alone)
        return accepted() if len(tried) == 2 else failed(outcome)

    monkeypatch.setattr(Grader, "_replays", True)
    monkeypatch.setattr(Grader, "_replayed", replayed)
    with grader(problem, Counted(), baselines=baselines) as one:
        verdict = one.grade(alone=alone)
    assert tried == attempts
    assert verdict.outcome is (Outcome.ACCEPTED if len(attempts) == 2 else outcome)


def test_what_lacked_memory_alone_is_not_graded_once_more(problem: Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fleet asks the grader whether others may have used the memory."""
    monkeypatch.setattr(Grader, "_replays", True)
    monkeypatch.setattr(Grader, "_replayed", lambda _, *, alone: failed(Outcome.MEMORY_LIMIT))
    with grader(problem, Counted(), baselines=[SUBMISSION]) as one:
        assert not one.lacked_memory(one.grade())


def test_a_build_that_fails_does_not_wait_for_the_reference(problem: Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    closed = threading.Event()
    monkeypatch.setattr(Grading, "_warm_up_checks", lambda _: closed.wait(60))
    monkeypatch.setattr(Reference, "close", lambda _: closed.set())
    monkeypatch.setattr(Session, "build", Mock(side_effect=SubmissionFault(Outcome.COMPILE_ERROR, "no")))
    begun = time.monotonic()
    with grader(problem, Counted()) as one:
        assert one.check().outcome is Outcome.COMPILE_ERROR
    assert time.monotonic() - begun < 50


def test_only_the_runner_of_the_submission_prepares_triton(problem: Problem) -> None:
    provider = Counted()
    sessions = Sessions(provider, "cpu", problem.limits, baselines=1, replayed=True, triton=True)
    sessions.start_all()
    sessions.others()
    sessions.close()
    prepares = ["KERNELMARK_TRITON" in environment for environment in provider.environments]
    assert sorted(prepares) == [False, False, False, True]
    assert provider.roles[prepares.index(True)] == "runner"


@pytest.mark.parametrize("ahead", [False, True])
def test_what_times_calls_that_run_side_by_side_has_several_queues(problem: Problem, *, ahead: bool) -> None:
    """It was not started ahead of its job, and does not wait for that."""

    def modes(*, replayed: bool) -> list[tuple[str, bool, bool]]:
        provider = Counted()
        sessions = Sessions(provider, "cpu", problem.limits, baselines=1, replayed=replayed, ahead=ahead)
        sessions.start_all()
        sessions.others()
        if ahead:
            sessions.wake()
        if replayed:
            sessions.start_launcher().result()
        sessions.close()
        assert provider.ended == len(provider.roles)
        return [
            (role, "KERNELMARK_ONE_QUEUE" in environment, "KERNELMARK_AHEAD" in environment)
            for role, environment in zip(provider.roles, provider.environments, strict=True)
        ]

    assert modes(replayed=False) == [("runner", False, ahead)] * 2, "they are timed themselves"
    first = [("runner", True, ahead)] * 2 + [("launcher", True, ahead)] * 2
    assert modes(replayed=True) == [*first, ("launcher", False, False)]


def test_a_grading_whose_other_launcher_does_not_start_is_done_again(
    problem: Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Alone: others may have had the memory. It has no rank if that fails, too."""
    monkeypatch.setattr(Grader, "_replays", True)
    monkeypatch.setattr(Grading, "grade", prepared)
    monkeypatch.setattr(Grader, "_in_rounds", lambda _, why, alone: (why, alone))
    provider = Counted(fails=2)
    with grader(problem, provider) as one:
        assert one.grade() == "up", "of the second attempt"
    assert provider.roles == ["runner", "launcher", "launcher"] * 2
    with grader(problem, Counted(fails=2)) as one:
        assert one.grade(alone=True) == ("it could not be launched", True)


def test_a_grading_is_closed_while_its_other_launcher_starts(problem: Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Grader, "_replays", True)
    monkeypatch.setattr(Grading, "grade", prepared)
    starting, closing = threading.Event(), threading.Event()

    class Waiting(Counted):
        def launch(self, launch: Launch) -> Any:
            launched = super().launch(launch)
            if len(self.roles) == 3:
                starting.set()
                assert closing.wait(60)
            return launched

    provider = Waiting()
    one = grader(problem, provider)
    with ThreadPoolExecutor(2) as pool:
        grading = pool.submit(one.grade)
        assert starting.wait(60)
        closed = pool.submit(one.close)
        closing.set()
        closed.result(60)
        assert grading.exception(60) is not None or grading.result() == "up", "it may have been up by then"
    assert provider.ended == len(provider.roles) == 3


@pytest.mark.parametrize("fails", [0, 1])
def test_a_sandbox_that_does_not_start_ends_the_others(problem: Problem, fails: int) -> None:
    provider = Counted(fails=fails)
    with (
        pytest.raises(SandboxError, match="could not be launched"),
        grader(problem, provider, baselines=[SUBMISSION]) as one,
    ):
        one.grade()
    assert provider.ended == len(provider.roles) - 1


def test_a_grading_that_is_ended_from_another_thread_ends_at_once(problem: Problem) -> None:
    """As a fleet's worker does when it stops: it must neither hang nor return a verdict."""
    asked = threading.Event()

    def never(script: Script, token: int, body: dict[str, Any]) -> None:
        asked.set()
        script.socket.recv(1)  # until the judge hangs up

    provider = Counted(never)
    first = grader(problem, provider)
    with ThreadPoolExecutor(1) as pool:
        grading = pool.submit(first.grade)
        assert asked.wait(60)
        begun = time.monotonic()
        first.close()
        assert time.monotonic() - begun < 30
        error = grading.exception(60)
        assert error is not None or grading.result().outcome is not Outcome.ACCEPTED
    assert provider.ended == len(provider.roles) == 1


def test_a_grading_that_is_ended_while_it_waits_for_the_device_starts_nothing_more(problem: Problem) -> None:
    """When a worker stops, the first of its gradings that ends gives the device to the next."""
    provider = Counted()
    waits = threading.Event()
    first = grader(problem, provider, on_progress=lambda progress: waits.set() if "waiting" in progress.label else None)
    with ThreadPoolExecutor(1) as pool:
        with device_lock.lock_alone("cpu", lambda: None):
            grading = pool.submit(first.grade)
            assert waits.wait(60)
            first.close()
        with pytest.raises(HarnessError, match="the grading was closed"):
            grading.result(60)
    with pytest.raises(HarnessError, match="the grading was closed"):
        first.check()
    assert provider.ended == len(provider.roles) == 1


def sessions(problem: Problem, provider: Scripted, *, baselines: int = 2, replayed: bool = True) -> Sessions:
    return Sessions(provider, "cpu", problem.limits, baselines=baselines, replayed=replayed)


def test_all_that_a_grading_needs_starts_at_once_and_only_once(problem: Problem) -> None:
    provider = Counted()
    own = sessions(problem, provider)
    own.close()
    assert provider.roles == [], "nothing was needed"
    own = sessions(problem, provider)
    own.start_all()
    own.start_all()
    own.wait()
    beside, launchers = own.others()
    assert (type(own.runner()), len(beside), len(launchers)) == (Session, 2, 3)
    assert provider.roles == ["runner"] * 3 + ["launcher"] * 3, "runners import torch, and so begin first"
    assert len({id(each) for each in (own.runner(), *beside, *launchers)}) == 6
    own.close()
    own.close()
    assert provider.ended == 6


@pytest.mark.parametrize("fails", range(6))
def test_whichever_does_not_start_the_rest_end(problem: Problem, fails: int) -> None:
    provider = Counted(fails=fails)
    own = sessions(problem, provider)
    with pytest.raises(SandboxError, match="could not be launched"):
        own.wait()
    own.close()
    assert provider.ended == len(provider.roles) - 1 == 5


def test_one_that_never_connects_is_our_failure(problem: Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.judge.session.conversation._START_S", 0.5)
    silent = threading.Event()
    provider = Scripted(doubling(), on_hello=lambda _: hush(silent))
    own = sessions(problem, provider, baselines=0, replayed=False)
    with pytest.raises(SandboxError):
        own.wait()
    silent.set()
    own.close()


def hush(until: threading.Event) -> None:
    until.wait(5)
