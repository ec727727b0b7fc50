"""A whole grading whose calls a launcher makes, against a runner and a launcher that are scripted."""

from __future__ import annotations

import mmap
import os
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np
import pytest
import torch

from harness.errors import DeviceError
from harness.judge import Progress
from harness.judge.correctness.layout import Layout
from harness.judge.grading import Grading
from harness.judge.session import Session
from harness.judge.timing import NotReplayed
from harness.judge.timing.replayed import timing as replayed_timing
from harness.judge.timing.replayed.launcher import Launcher
from harness.judge.timing.replayed.timing import ReplayedBaseline, ReplayedTiming
from harness.problem import Problem, load
from harness.recording import pack
from harness.submission import Submission
from harness.verdict import Outcome, ReplayedBenchmark, Verdict
from kernelmark.services.selftest import PROBLEMS
from tests.integration.test_replays import LOADED, recording
from tests.recordings import BLOBS, CALL
from tests.runners import Act, Script, Scripted, doubling

SUBMISSION = Submission.of("def twice(x, y): ...", "py", author="ada")
ELSEWHERE = "`twice` is given memory at 0x7f0000000000"


class Events(list[str]):
    """What happened, in its order."""

    def on(self, step: Progress) -> None:
        self.append(step.stage.value)


def launching(problem: Problem, events: Events, factor: Callable[[int], float] = lambda call: 2.0) -> Act:
    """A launcher whose call `n` multiplies the benchmark's input by a factor."""
    slots = {s.tensor.name: s for s in Layout(problem.resolve(problem.benchmarks[0])).slots}

    def act(script: Script, token: int, body: dict[str, Any]) -> None:
        if body["kind"] == "Load":
            events.append("Load")
            script.reply(token, "Loaded", **LOADED)
            return
        events.append("Replay")
        inputs, outputs = script.arenas()
        with mmap.mmap(inputs, 0, prot=mmap.PROT_READ) as given, mmap.mmap(outputs, 0) as to:
            x = np.frombuffer(given[: slots["x"].nbytes], np.float32)
            y = factor(events.count("Replay")) * x
            to[slots["y"].offset : slots["y"].offset + slots["y"].nbytes] = y.astype(np.float32).tobytes()
        script.reply(token, "Replayed", device_ns=5_000, event_ns=8_000, span_ns=25_000, nodes_ns=[5_000])

    return act


def graded(
    problem: Problem, runner: Act, launcher: Act, events: Events, *, baseline: bool = False, beside: Act | None = None
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
                Session.start(provider, "cpu", problem.limits, role=role, records=role == "runner")
            )

        own = session(runner, "runner", ended)
        launchers = [stack.enter_context(Launcher(session(launcher, "launcher"), "cpu")) for _ in range(1 + baseline)]
        other = beside or runner
        recorded = [
            ReplayedBaseline(Submission.of("", "py", author="o", name="eager.py"), session(other, "runner"), each)
            for each in launchers[1:]
        ]
        timing = stack.enter_context(ReplayedTiming("quick", launchers[0], recorded, (), alone))
        grading = Grading(problem, SUBMISSION, Scripted(runner), "cpu", events.on, "quick")
        return grading.grade(own, timing, "0" * 16)


def test_the_runner_is_gone_before_a_call_is_timed() -> None:
    problem, events = load(PROBLEMS / "double"), Events()
    verdict = graded(problem, recording(pack(CALL, BLOBS)), launching(problem, events), events)
    assert (verdict.outcome, verdict.timing, verdict.stage.value) == (Outcome.ACCEPTED, "replayed", "replay")
    [case] = verdict.benchmarks
    assert isinstance(case, ReplayedBenchmark)
    assert verdict.score is not None
    assert verdict.score.median_ns == case.score.median_ns == 5_000
    assert [(k.name, k.grid, k.registers, k.time_ns) for k in case.kernels] == [("twice", (4, 1, 1), 16, 5_000)]
    assert case.stop_reason == "converged"
    timed = events.index("alone")
    assert events.index("ended") < timed
    assert events[:timed].count("Replay") == 1, "one call is tried while there is a runner to go back to"
    counted = len(case.calls.device_ns)
    assert events[timed:].count("Replay") == counted + 3 + -(-counted // 10), (
        "warm-ups, and one each time that it moves"
    )


def test_baselines_are_replayed_in_alternation() -> None:
    problem, events = load(PROBLEMS / "double"), Events()
    runner = recording(pack(CALL, BLOBS))
    verdict = graded(problem, runner, launching(problem, events), events, baseline=True)
    [case] = verdict.benchmarks
    [paired] = case.baselines
    assert (paired.name, paired.time_ns, paired.speedup.median) == ("eager", 5_000, pytest.approx(1))
    assert [(s.baseline, s.ratio.median) for s in verdict.speedups] == [("eager", pytest.approx(1))]


def test_what_a_baseline_writes_is_not_the_submissions() -> None:
    """Its warm-up writes before its output, in the same group of inputs as the submission's calls."""
    problem, events = load(PROBLEMS / "double"), Events()
    honest = launching(problem, events)
    launchers: list[Script] = []

    def act(script: Script, token: int, body: dict[str, Any]) -> None:
        if script not in launchers:
            launchers.append(script)
        if body["kind"] == "Replay" and launchers.index(script) == 1:
            os.pwrite(script.arenas()[1], b"anything", 0)
        honest(script, token, body)

    verdict = graded(problem, recording(pack(CALL, BLOBS)), act, events, baseline=True)
    assert verdict.outcome is Outcome.ACCEPTED, verdict.message
    assert verdict.benchmarks[0].baselines == ()
    [doubt] = verdict.doubts
    assert doubt.code == "no_baseline"
    assert "bytes outside its outputs" in doubt.text


def failing(problem: Problem, events: Events, which: int, kind: str) -> Act:
    """Launchers of which one fails by a mistake of our own: the first is the submission's."""
    honest = launching(problem, events)
    seen: list[Script] = []

    def act(script: Script, token: int, body: dict[str, Any]) -> None:
        if script not in seen:
            seen.append(script)
        if body["kind"] == kind and seen.index(script) == which:
            script.reply(token, "Broken", message="KeyError: 7", traceback="")
        else:
            honest(script, token, body)

    return act


@pytest.mark.parametrize("kind", ["Load", "Replay"])
def test_our_mistake_in_a_baselines_launcher_costs_the_speedup_alone(kind: str) -> None:
    problem, events = load(PROBLEMS / "double"), Events()
    act = failing(problem, events, 1, kind)
    verdict = graded(problem, recording(pack(CALL, BLOBS)), act, events, baseline=True)
    assert verdict.outcome is Outcome.ACCEPTED, verdict.message
    [doubt] = verdict.doubts
    assert doubt.code == "no_baseline"
    assert "the launcher failed" in doubt.text


def test_after_our_mistake_in_the_submissions_launcher_it_makes_plain_calls() -> None:
    problem, events = load(PROBLEMS / "double"), Events()
    with pytest.raises(NotReplayed, match="the launcher failed while timing a million: KeyError: 7"):
        graded(problem, recording(pack(CALL, BLOBS)), failing(problem, events, 0, "Replay"), events)


def test_a_baseline_that_is_still_recorded_keeps_nobody_waiting() -> None:
    problem, events = load(PROBLEMS / "double"), Events()
    honest = recording(pack(CALL, BLOBS))
    recorded_for_ever = threading.Event()

    def slow(script: Script, token: int, body: dict[str, Any]) -> None:
        if body["kind"] == "Record":
            recorded_for_ever.set()
            time.sleep(60)
        honest(script, token, body)

    def refused(script: Script, token: int, body: dict[str, Any]) -> None:
        if body["kind"] == "Record":
            recorded_for_ever.wait(10)
            script.reply(token, "Recorded", file_bytes=0, scratch_bytes=0, reason="a host node", note="")
        else:
            honest(script, token, body)

    begun = time.monotonic()
    with pytest.raises(NotReplayed, match="a host node"):
        graded(problem, refused, launching(problem, events), events, baseline=True, beside=slow)
    assert time.monotonic() - begun < 10


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (DeviceError("no arena of 1 bytes"), "no arena of 1 bytes"),
        (torch.OutOfMemoryError("CUDA out of memory. Process 1 has 26 GiB"), "the device had too little free memory"),
    ],
)
def test_without_memory_for_it_nothing_is_recorded(
    error: Exception, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem, events = load(PROBLEMS / "double"), Events()

    def full(*_: object) -> None:
        raise error

    monkeypatch.setattr(replayed_timing, "FreshInputs", full)
    with pytest.raises(NotReplayed, match=f"^benchmark a million: {told}$"):
        graded(problem, recording(pack(CALL, BLOBS)), launching(problem, events), events)


def test_what_hidden_tests_took_is_not_told() -> None:
    problem, events = load(PROBLEMS / "double_hidden"), Events()
    hidden_s, honest = 0.4, recording(pack(CALL, BLOBS))

    def slow(script: Script, token: int, body: dict[str, Any]) -> None:
        if body["kind"] == "Call" and "hidden" in events:
            time.sleep(hidden_s)
        honest(script, token, body)

    begun = time.perf_counter()
    verdict = graded(problem, slow, launching(problem, events), events)
    assert verdict.outcome is Outcome.ACCEPTED
    assert verdict.duration_ns < 1e9 * (time.perf_counter() - begun - hidden_s)


@pytest.mark.parametrize(
    ("runner", "factor", "why"),
    [
        (recording(b"", told={"reason": "a host node"}), 2.0, "a host node"),
        (recording(b"no recording"), 2.0, "benchmark a million: .*the runner's recording is not valid"),
        (recording(pack(CALL, BLOBS)), 3.0, "benchmark a million: call 1: y"),
        (recording(pack(CALL, BLOBS), told={"note": ELSEWHERE}), 3.0, f"call 1: y.* \\({ELSEWHERE}\\)$"),
    ],
    ids=["it says so", "what came is none", "the launcher makes something else of it", "as the runner feared"],
)
def test_what_a_launcher_cannot_make_is_no_fault_of_the_submission(runner: Act, factor: float, why: str) -> None:
    problem, events = load(PROBLEMS / "double"), Events()
    with pytest.raises(NotReplayed, match=why):
        graded(problem, runner, launching(problem, events, lambda call: factor), events)
    assert "alone" not in events


def test_a_call_is_replayed_although_it_has_a_pointer_to_elsewhere() -> None:
    problem, events = load(PROBLEMS / "double"), Events()
    runner = recording(pack(CALL, BLOBS), told={"note": ELSEWHERE})
    verdict = graded(problem, runner, launching(problem, events), events)
    assert (verdict.outcome, verdict.timing, verdict.doubts) == (Outcome.ACCEPTED, "replayed", ())


def test_a_pointer_to_elsewhere_may_be_why_a_later_call_is_wrong() -> None:
    problem, events = load(PROBLEMS / "double"), Events()
    runner = recording(pack(CALL, BLOBS), told={"note": ELSEWHERE})
    wrong_later = launching(problem, events, lambda call: 2.0 if call < 10 else 3.0)
    with pytest.raises(NotReplayed, match=f"^benchmark a million: .*calls .*: y.* \\({ELSEWHERE}\\)$"):
        graded(problem, runner, wrong_later, events)


def test_a_call_that_is_wrong_when_it_is_timed_decides_the_outcome() -> None:
    problem, events = load(PROBLEMS / "double"), Events()
    wrong_later = launching(problem, events, lambda call: 2.0 if call < 10 else 3.0)
    verdict = graded(problem, recording(pack(CALL, BLOBS)), wrong_later, events)
    assert verdict.outcome is Outcome.WRONG_ANSWER
    assert verdict.message.startswith("benchmark a million: one of the calls 4 to ")
    assert verdict.score is None


def test_a_wrong_test_is_never_recorded() -> None:
    problem, events = load(PROBLEMS / "double"), Events()
    honest = doubling()

    def idle(script: Script, token: int, body: dict[str, Any]) -> None:
        if body["kind"] == "Call":
            script.reply(token, "Done")
        else:
            honest(script, token, body)

    verdict = graded(problem, idle, launching(problem, events), events)
    assert verdict.outcome is Outcome.WRONG_ANSWER
    assert "record" not in events
    assert "Load" not in events
