"""A whole grading whose calls a launcher makes, against a runner and a launcher that are scripted."""

from __future__ import annotations

import mmap
import os
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from harness.errors import DeviceError
from harness.judge import Progress, Setup
from harness.judge.correctness.graded_case import GradedCase
from harness.judge.correctness.layout import Layout
from harness.judge.grading import Grading
from harness.judge.session import Session
from harness.judge.session.builds import Builds
from harness.judge.timing import NotReplayed
from harness.judge.timing.replayed import launcher as replayed_launcher
from harness.judge.timing.replayed import timing as replayed_timing
from harness.judge.timing.replayed.fresh_inputs import FreshInputs
from harness.judge.timing.replayed.launcher import LauncherSession
from harness.judge.timing.replayed.timing import ReplayedBaseline, ReplayedTiming
from harness.problem import Problem, load
from harness.problem.spec import BaselineSpec
from harness.recording.file import pack
from harness.recording.schema import Edge
from harness.submission import Submission
from harness.verdict import Outcome, Verdict
from kernelmark.diagnostics.selftest import PROBLEMS
from tests.integration.test_replays import LOADED, recording
from tests.recordings import BLOBS, CALL
from tests.runners import Act, Script, Scripted, answering, but, doubling, failing

SUBMISSION = Submission.of("def twice(x, y): ...", "py", author="ada")
DOUBLE = load(PROBLEMS / "double")
RECORDED = recording(pack(CALL, BLOBS))
ELSEWHERE = "`twice` is given memory at 0x7f0000000000"


POINTS_ELSEWHERE = recording(pack(CALL, BLOBS), reply={"note": ELSEWHERE})


BROKEN = answering("Broken", message="KeyError: 7", traceback="")


def hanging(began: threading.Event) -> Act:
    """Answers after a minute."""

    def act(script: Script, token: int, body: dict[str, Any]) -> None:
        began.set()
        time.sleep(60)

    return act


class Events(list[str]):
    """What happened, in its order."""

    def on(self, step: Progress) -> None:
        self.append(step.stage.value)


@pytest.fixture
def events() -> Events:
    return Events()


def launching(events: Events, factor: Callable[[int], float] = lambda call: 2.0, most: float = np.inf) -> Act:
    """A launcher whose call `n` multiplies the benchmark's input by a factor, cut off beyond a magnitude."""
    slots = {s.tensor.name: s for s in Layout(DOUBLE.resolve(DOUBLE.benchmarks[0])).slots}

    def load_it(script: Script, token: int, body: dict[str, Any]) -> None:
        events.append("Load")
        script.reply(token, "Loaded", **LOADED)

    def replay(script: Script, token: int, body: dict[str, Any]) -> None:
        events.append("Replay")
        inputs, outputs = script.arenas()
        with mmap.mmap(inputs, 0, prot=mmap.PROT_READ) as given, mmap.mmap(outputs, 0) as to:
            x = np.frombuffer(given[: slots["x"].nbytes], np.float32)
            y = (factor(events.count("Replay")) * x).clip(-most, most)
            to[slots["y"].offset : slots["y"].offset + slots["y"].nbytes] = y.astype(np.float32).tobytes()
        script.reply(token, "Replayed", device_ns=5_000, event_ns=8_000, span_ns=25_000, nodes_ns=[5_000])

    def release(script: Script, token: int, body: dict[str, Any]) -> None:
        events.append("Release")
        script.reply(token, "Done")

    return but(replay, Load=load_it, Release=release)


def graded(
    events: Events,
    runner: Act = RECORDED,
    launcher: Act | None = None,
    *,
    problem: Problem = DOUBLE,
    baseline: bool = False,
    beside: Act | None = None,
    early: bool = False,
    file: str = "eager.py",
) -> Verdict:
    """Grade as `harness.judge` does on a GPU, but for the GPU; `beside` is the baseline's runner, if it is another."""

    @contextmanager
    def alone() -> Any:
        events.append("alone")
        yield

    def ended() -> None:
        events.append("ended")

    with ExitStack() as stack:

        def session(act: Act, role: Any, on_close: Callable[[], None] = lambda: None) -> Session:
            provider = Scripted(act, on_close=on_close)
            return stack.enter_context(
                Session.start(provider, "cpu", problem.limits, role=role, modes=["records"] if role == "runner" else [])
            )

        own = session(runner, "runner", ended)

        def another() -> Session:
            events.append("another launcher")
            return session(launching(events), "launcher")

        launchers = [
            LauncherSession(session(launcher or launching(events), "launcher"), "cpu", another)
            for _ in range(1 + baseline)
        ]
        other = beside or runner
        recorded = [
            ReplayedBaseline(
                problem.baseline_label(file.removesuffix(".py")),
                Submission.of("", "py", author="o", name=file),
                session(other, "runner"),
                each,
            )
            for each in launchers[1:]
        ]
        timing = stack.enter_context(ReplayedTiming("quick", launchers[0], recorded, (), alone, early=early))
        provider = Scripted(runner)
        setup = Setup(problem, SUBMISSION, provider=provider, device="cpu", effort="quick", on_progress=events.on)
        return Grading(setup, Builds(provider, "cpu", problem.limits, None)).grade(own, timing)


def test_the_runner_is_gone_before_a_call_is_timed(events: Events) -> None:
    verdict = graded(events)
    assert (verdict.outcome, verdict.timing, verdict.stage.value) == (Outcome.ACCEPTED, "replayed", "replay")
    [case] = verdict.benchmarks
    assert verdict.score.median_ns == case.score.median_ns == 5_000
    assert [(k.name, k.grid, k.registers, k.time_ns) for k in case.kernels] == [("twice", (4, 1, 1), 16, 5_000)]
    assert case.stop_reason == "converged"
    timed = events.index("alone")
    assert events.index("ended") < timed
    tried = [event for event in events[:timed] if event in ("Load", "Replay", "Release")]
    assert tried == ["Load", "Replay", "Release"], "one call, whose memory is free before a baseline is recorded"
    assert events[timed:].count("Release") == 1, "checks of the problem follow, which may take as much memory"
    counted = len(case.calls.device_ns)
    assert events[timed:].count("Replay") == counted + 3 + -(-counted // 10), (
        "warm-ups, and one each time that it moves"
    )


@pytest.mark.parametrize(
    ("edges", "others"),
    [((), 2), ((Edge(0, 1, "begun"),), 2), ((Edge(0, 1, "triggered"),), 2), ((Edge(0, 1, "ended"),), 0)],
)
def test_a_call_whose_parts_may_run_side_by_side_gets_another_launcher(
    events: Events, monkeypatch: pytest.MonkeyPatch, edges: tuple[Edge, ...], others: int
) -> None:
    """The submission's and the baseline's; both are up before anything is timed."""
    handshake = Session.handshake

    def noted(session: Session) -> None:
        handshake(session)
        events.append("up")

    monkeypatch.setattr(Session, "handshake", noted)
    first = failing("runtime_error", "the first launcher was asked") if others else launching(events)
    recorded = recording(pack(replace(CALL, nodes=CALL.nodes * 2, edges=edges), BLOBS))
    verdict = graded(events, recorded, first, baseline=True)
    assert (verdict.outcome, verdict.timing, len(verdict.speedups)) == (Outcome.ACCEPTED, "replayed", 1)
    before = events[: events.index("alone")]
    assert events.count("another launcher") == before.count("another launcher") == others
    assert before.count("up") == 2 + others + 1, "two runners, what replaced their launchers, and a launcher that loads"


@pytest.mark.parametrize(
    ("slug", "order"), [("double", ["ended", "Replay"]), ("double_hidden", ["Replay", "hidden", "ended"])]
)
def test_the_runner_ends_as_soon_as_nothing_is_left_for_it_to_do(events: Events, slug: str, order: list[str]) -> None:
    """It and PyTorch keep memory that a large case's first replay needs."""
    assert graded(events, problem=load(PROBLEMS / slug)).outcome is Outcome.ACCEPTED
    assert list(dict.fromkeys(event for event in events if event in order)) == order


def test_a_test_that_needs_more_memory_than_the_device_has_is_left_out(events: Events) -> None:
    first, *others = DOUBLE.tests
    large = first.model_copy(update={"name": "large", "memory_gib": 1})
    verdict = graded(events, problem=DOUBLE.model_copy(update={"tests": (large, first, *others)}))
    assert verdict.outcome is Outcome.ACCEPTED
    assert verdict.tests_not_run == 0
    assert [test.name for test in verdict.tests] == [test.name for test in DOUBLE.tests]


def test_a_replay_that_is_short_of_memory_is_tried_once_more_without_a_runner(
    events: Events, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, real = list[object](), replayed_timing.FreshInputs

    def short_at_first(case: GradedCase) -> FreshInputs:
        made.append(case)
        if len(made) == 1:
            raise DeviceError("no arena of 1 bytes")
        return real(case)

    monkeypatch.setattr(replayed_timing, "FreshInputs", short_at_first)
    assert graded(events).outcome is Outcome.ACCEPTED
    assert len(made) == 3, "in two trials, and when it is timed"
    assert events.index("Release") < events.index("Replay"), "meanwhile baselines are recorded"


def test_the_hosts_time_to_launch_a_call_is_said_and_does_not_count(events: Events) -> None:
    slow = recording(pack(CALL, BLOBS), reply={"host_ns": 35_200})
    first, second = (graded(events, runner).benchmarks for runner in (RECORDED, slow))
    assert [getattr(case, "host_ns", "") for case in (*first, *second)] == [None, 35_200]
    assert first[0].score == second[0].score
    assert first[0].doubts == second[0].doubts


def test_baselines_are_replayed_in_alternation(events: Events) -> None:
    verdict = graded(events, baseline=True)
    [case] = verdict.benchmarks
    [paired] = case.baselines
    assert (paired.name, paired.time_ns, paired.speedup.median) == ("eager", 5_000, pytest.approx(1))
    assert [(s.baseline, s.ratio.median) for s in verdict.speedups] == [("eager", pytest.approx(1))]


def test_a_baseline_that_computes_something_else_gets_inputs_of_its_own(events: Events) -> None:
    """Its launcher writes nothing, and its arenas are of other sizes."""
    dense = BaselineSpec.model_validate(
        {
            "name": "dense",
            "kind": "dense",
            "entry": "other",
            "tensors": [
                {"name": "a", "role": "input", "shape": ["2 * n"], "dtype": "float64"},
                {"name": "b", "role": "output", "shape": ["n"], "dtype": "float64"},
            ],
        }
    )
    honest, launchers, sizes = launching(events), list[Script](), list[tuple[int, int]]()

    def act(script: Script, token: int, body: dict[str, Any]) -> None:
        if script not in launchers:
            launchers.append(script)
        if body["kind"] == "Replay" and launchers.index(script) == 1:
            sizes.append(tuple(os.fstat(arena).st_size for arena in script.arenas()))
            script.reply(token, "Replayed", device_ns=20_000, event_ns=23_000, span_ns=40_000, nodes_ns=[20_000])
            return
        honest(script, token, body)

    problem = DOUBLE.model_copy(update={"baselines": (dense,)})
    verdict = graded(events, launcher=act, problem=problem, baseline=True, file="dense.py")
    assert (verdict.outcome, verdict.doubts) == (Outcome.ACCEPTED, ()), verdict.message
    [paired] = verdict.benchmarks[0].baselines
    assert paired.name == "dense (another computation)"
    assert paired.speedup.median == pytest.approx(4)
    assert all(inputs >= 16_000_000 and outputs >= 8_000_000 for inputs, outputs in sizes)


def test_what_a_baseline_writes_is_not_the_submissions(events: Events) -> None:
    """Its warm-up writes before its output, in the same group of inputs as the submission's calls."""
    honest = launching(events)
    launchers: list[Script] = []

    def act(script: Script, token: int, body: dict[str, Any]) -> None:
        if script not in launchers:
            launchers.append(script)
        if body["kind"] == "Replay" and launchers.index(script) == 1:
            os.pwrite(script.arenas()[1], b"anything", 0)
        honest(script, token, body)

    verdict = graded(events, launcher=act, baseline=True)
    assert verdict.outcome is Outcome.ACCEPTED, verdict.message
    assert verdict.benchmarks[0].baselines == ()
    [doubt] = verdict.doubts
    assert doubt.code == "no_baseline"
    assert "bytes outside its outputs" in doubt.text


@pytest.mark.parametrize("large", [False, True])
def test_a_baseline_with_small_tensors_is_recorded_from_the_start(
    events: Events, large: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A large one could take the memory that a test needs."""
    recorded = threading.Event()
    monkeypatch.setattr(Layout, "is_large", large)

    def called(script: Script, token: int, body: dict[str, Any]) -> None:
        assert large or recorded.wait(60), "its recording does not wait for the tests"
        RECORDED(script, token, body)

    def record(script: Script, token: int, body: dict[str, Any]) -> None:
        events.append("baseline")
        RECORDED(script, token, body)
        recorded.set()

    verdict = graded(events, but(RECORDED, Call=called), baseline=True, beside=but(RECORDED, Record=record), early=True)
    assert verdict.outcome is Outcome.ACCEPTED, verdict.message
    assert [speedup.baseline for speedup in verdict.speedups] == ["eager"]
    assert (events.index("record") < events.index("baseline")) == large
    assert events.index("baseline") < events.index("alone")


def test_a_wrong_answer_does_not_wait_for_a_baseline(events: Events) -> None:
    called = threading.Event()

    def wrong(script: Script, token: int, body: dict[str, Any]) -> None:
        assert called.wait(60)
        script.reply(token, "Done")

    begun = time.monotonic()
    verdict = graded(
        events, but(RECORDED, Call=wrong), baseline=True, beside=but(RECORDED, Call=hanging(called)), early=True
    )
    assert verdict.outcome is Outcome.WRONG_ANSWER
    assert time.monotonic() - begun < 50


@pytest.mark.parametrize(("times", "speedups"), [(1, ["eager"]), (2, [])])
def test_a_baseline_that_is_short_of_memory_is_recorded_once_more_alone(
    events: Events, times: int, speedups: list[str]
) -> None:
    asked: list[str] = []

    def short(script: Script, token: int, body: dict[str, Any]) -> None:
        asked.append(body["kind"])
        (failing("memory_limit", "out of memory") if len(asked) <= times else RECORDED)(script, token, body)

    verdict = graded(events, baseline=True, beside=but(RECORDED, Record=short))
    assert verdict.outcome is Outcome.ACCEPTED, verdict.message
    assert [speedup.baseline for speedup in verdict.speedups] == speedups
    assert [doubt.code for doubt in verdict.doubts] == ["no_baseline"] * (1 - len(speedups))
    assert len(asked) == 2


def test_a_baseline_whose_scratch_finds_no_memory_costs_its_speedup_alone(
    events: Events, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = replayed_launcher.make_arena

    def only_small(device: Any, nbytes: int, **options: Any) -> Any:
        if nbytes == 1 << 20 and "alone" in events:
            raise DeviceError("no arena of 1,048,576 bytes", "free some memory")
        return honest(device, nbytes, **options)

    monkeypatch.setattr(replayed_launcher, "make_arena", only_small)
    large = recording(pack(replace(CALL, scratch_bytes=1 << 20), BLOBS), bytes(1 << 20))
    verdict = graded(events, baseline=True, beside=large)
    assert verdict.outcome is Outcome.ACCEPTED, verdict.message
    [doubt] = verdict.doubts
    assert doubt.code == "no_baseline"
    assert "no arena of 1,048,576 bytes" in doubt.text


def broken(events: Events, which: int, kind: str) -> Act:
    """Launchers of which one fails by a mistake of our own: the first is the submission's."""
    honest = launching(events)
    seen: list[Script] = []

    def act(script: Script, token: int, body: dict[str, Any]) -> None:
        if script not in seen:
            seen.append(script)
        mistaken = body["kind"] == kind and seen.index(script) == which
        (BROKEN if mistaken else honest)(script, token, body)

    return act


@pytest.mark.parametrize("kind", ["Load", "Replay"])
def test_our_mistake_in_a_baselines_launcher_costs_the_speedup_alone(events: Events, kind: str) -> None:
    verdict = graded(events, launcher=broken(events, 1, kind), baseline=True)
    assert verdict.outcome is Outcome.ACCEPTED, verdict.message
    [doubt] = verdict.doubts
    assert doubt.code == "no_baseline"
    assert "the launcher failed" in doubt.text


def test_after_our_mistake_in_the_submissions_launcher_it_makes_plain_calls(events: Events) -> None:
    with pytest.raises(NotReplayed, match="the launcher failed while timing a million: KeyError: 7"):
        graded(events, launcher=broken(events, 0, "Replay"))


def test_a_baseline_that_is_still_recorded_keeps_nobody_waiting(events: Events) -> None:
    recorded_for_ever = threading.Event()

    def refused(script: Script, token: int, body: dict[str, Any]) -> None:
        recorded_for_ever.wait(10)
        script.reply(token, "Recorded", file_bytes=0, scratch_bytes=0, reason="a host node", note="", host_ns=0)

    begun = time.monotonic()
    with pytest.raises(NotReplayed, match=r"^a host node$"):
        graded(
            events,
            but(RECORDED, Record=refused),
            baseline=True,
            beside=but(RECORDED, Record=hanging(recorded_for_ever)),
        )
    assert time.monotonic() - begun < 50
    assert "alone" not in events, "what cannot be recorded is no fault of the submission"


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (DeviceError("no arena of 1 bytes"), "no arena of 1 bytes"),
        (torch.OutOfMemoryError("CUDA out of memory. Process 1 has 26 GiB"), "the device had too little free memory"),
    ],
)
def test_without_memory_for_it_nothing_is_recorded(
    events: Events, error: Exception, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise error

    monkeypatch.setattr(replayed_timing, "FreshInputs", full)
    with pytest.raises(NotReplayed, match=f"^benchmark a million: {told}$"):
        graded(events)


def test_what_hidden_tests_took_is_not_told(events: Events) -> None:
    problem = load(PROBLEMS / "double_hidden")
    hidden_s = 0.4

    def slow(script: Script, token: int, body: dict[str, Any]) -> None:
        time.sleep(hidden_s if "hidden" in events else 0)
        RECORDED(script, token, body)

    begun = time.perf_counter()
    verdict = graded(events, but(RECORDED, Call=slow), problem=problem)
    assert verdict.outcome is Outcome.ACCEPTED
    assert verdict.duration_ns < 1e9 * (time.perf_counter() - begun - hidden_s)


def test_what_is_no_recording_ends_the_grading(events: Events) -> None:
    verdict = graded(events, recording(b"no recording"))
    assert verdict.outcome is Outcome.REJECTED
    assert "the runner's recording is not valid" in verdict.message


def test_a_call_is_replayed_although_it_has_a_pointer_to_elsewhere(events: Events) -> None:
    verdict = graded(events, POINTS_ELSEWHERE)
    assert (verdict.outcome, verdict.timing, verdict.doubts) == (Outcome.ACCEPTED, "replayed", ())


@pytest.mark.parametrize(
    ("right", "told"), [(0, ""), (9, "one of the calls 4 to ")], ids=["at once", "when it is timed"]
)
@pytest.mark.parametrize("note", ["", ELSEWHERE])
def test_a_replay_that_is_wrong_has_no_second_chance(events: Events, right: int, told: str, note: str) -> None:
    runner = recording(pack(CALL, BLOBS), reply={"note": note})
    wrong = launching(events, lambda call: 2.0 if call <= right else 3.0)
    verdict = graded(events, runner, wrong)
    assert verdict.outcome is Outcome.WRONG_ANSWER
    assert verdict.message.startswith(f"benchmark a million: {told}")
    assert verdict.message.endswith(f" ({note})" if note else "")
    assert verdict.score is None


def breaking(events: Events, right: int) -> Act:
    """A launcher whose driver fails after so many calls."""
    honest, breaks = launching(events), failing("runtime_error", "it broke", fatal=True)

    def replay(script: Script, token: int, body: dict[str, Any]) -> None:
        (honest if events.count("Replay") < right else breaks)(script, token, body)

    return but(honest, Replay=replay)


def test_a_replay_that_needs_memory_which_no_launcher_has_is_made_plainly(events: Events) -> None:
    with pytest.raises(NotReplayed, match=f"it broke.* \\({ELSEWHERE}\\)$"):
        graded(events, POINTS_ELSEWHERE, breaking(events, 0))


@pytest.mark.parametrize(("note", "right"), [("", 0), (ELSEWHERE, 1)], ids=["no reason given", "not the first"])
def test_other_failures_of_a_replay_are_the_submissions(events: Events, note: str, right: int) -> None:
    runner = recording(pack(CALL, BLOBS), reply={"note": note})
    verdict = graded(events, runner, breaking(events, right))
    assert (verdict.outcome, verdict.score) == (Outcome.RUNTIME_ERROR, None)


def test_a_replay_that_does_not_end_has_no_second_chance(events: Events) -> None:
    problem = DOUBLE.model_copy(update={"limits": DOUBLE.limits.model_copy(update={"time_s": 3.0})})
    endless = but(launching(events), Replay=lambda *_: None)
    verdict = graded(events, POINTS_ELSEWHERE, endless, problem=problem)
    assert verdict.outcome is Outcome.TIMEOUT
    assert verdict.message.startswith("benchmark a million: gave no answer within 3 s")


def test_a_call_that_fails_when_it_is_recorded_is_the_submissions_fault(events: Events) -> None:
    told = "leaves work on a stream that nobody waits for"
    verdict = graded(events, but(RECORDED, Record=failing("runtime_error", told)))
    assert verdict.outcome is Outcome.RUNTIME_ERROR
    assert verdict.message == f"benchmark a million: {told}"


def test_a_recording_that_is_right_for_the_usual_values_alone_is_wrong(events: Events) -> None:
    problem = load(PROBLEMS / "double_values")
    verdict = graded(events, launcher=launching(events, most=100), problem=problem)
    assert verdict.outcome is Outcome.WRONG_ANSWER
    assert verdict.message.startswith("benchmark a million: with the values of test large values: y: ")


def test_a_wrong_test_is_never_recorded(events: Events) -> None:
    verdict = graded(events, but(doubling(), Call=answering("Done")))
    assert verdict.outcome is Outcome.WRONG_ANSWER
    assert "record" not in events
    assert "Load" not in events
