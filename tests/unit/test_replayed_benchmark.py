"""How many calls the replay stage makes and which time follows from them, with a scripted launcher."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from harness.judge.correctness.graded_case import GradedCase
from harness.judge.session import SubmissionFault
from harness.judge.timing.plan import TimingPlan
from harness.judge.timing.replayed import benchmark as replaying
from harness.judge.timing.replayed.benchmark import PairedReplays, Player, ReplayMeasurement
from harness.problem import ResolvedCase, load
from harness.problem.reference import Reference
from harness.recording.file import Packed
from harness.submission import Submission
from harness.verdict import Outcome, ReplayedBenchmark
from harness.wire import replies
from kernelmark.diagnostics.selftest import PROBLEMS
from tests.recordings import CALL

PROBLEM = load(PROBLEMS / "double")
CASE = GradedCase(PROBLEM, Reference.load(PROBLEM), "cpu", PROBLEM.resolve(PROBLEM.benchmarks[0]))
CALL_NS, BLOCK_NS = 10_000, 1_000_000
APART = replies.Loaded(
    functions=(replies.Function(registers=16, local_bytes=0, shared_bytes=0),),
    event_extra_ns=2_900,
    span_extra_ns=9_000,
)
PLAN = TimingPlan(blocks_min=6, blocks_max=40, blocks_budget_ns=1000 * BLOCK_NS, narrow=0.005)


class Scripted:
    """A launcher whose calls take what an iterator says, and None ends it; and the clock that goes on with them."""

    def __init__(self, times: Iterator[int | None]) -> None:
        self.times, self.now_ns = times, 0

    def load(self, *_: object) -> replies.Loaded:
        return APART

    def play(self, *_: object) -> replies.Replayed:
        self.now_ns += BLOCK_NS // 2
        ns = next(self.times)
        if ns is None:
            raise SubmissionFault(Outcome.RUNTIME_ERROR, "CUDA driver: it broke")
        return replies.Replayed(device_ns=ns, event_ns=ns + 3_000, span_ns=ns + 12_000, nodes_ns=(ns,))


class Inputs:
    """Counts what is asked of them."""

    descriptors, group, checking_ns = (0, 0), 20, 0

    def __init__(self, places: int = 1) -> None:
        self.asked: list[str] = []
        self._places = places

    def move(self) -> bool:
        if self._places > 1:
            self.asked.append("move")
        return self._places > 1

    @property
    def seeds(self) -> list[int]:
        return list(range(-(-self.asked.count("next") // self.group)))

    def with_values(self, values: Sequence[ResolvedCase]) -> Iterator[ResolvedCase]:
        for value in values:
            self.asked.append(value.name)
            yield value

    def __getattr__(self, name: str) -> Any:
        return lambda: self.asked.append(name)


def every(*times: int | None) -> Iterator[int | None]:
    while True:
        yield from times


def varying() -> Iterator[int]:
    """From -20 to +20 %, the same in each test."""
    drawn = random.Random(1)
    while True:
        yield round(CALL_NS * drawn.uniform(0.8, 1.2))


def player(launcher: Scripted) -> Player:
    recorded: Any = SimpleNamespace(packed=Packed(CALL, memoryview(b"")), host_ns=0)
    return Player(launcher, recorded, CASE, None)  # type: ignore[arg-type]  # a stand-in


def timed(
    monkeypatch: pytest.MonkeyPatch,
    launcher: Scripted,
    *beside: Scripted,
    plan: TimingPlan = PLAN,
    places: int = 1,
    values: Sequence[ResolvedCase] = (),
) -> tuple[ReplayedBenchmark, Inputs, list[Any]]:
    clock = SimpleNamespace(perf_counter_ns=lambda: launcher.now_ns)
    monkeypatch.setattr(replaying, "time", clock)
    inputs: Any = Inputs(places)
    baselines: list[Any] = [
        SimpleNamespace(name=f"baseline{n}", submission=Submission.of("", "py", author="o"), fault=None)
        for n in range(len(beside))
    ]
    found = [PairedReplays(each, player(its)) for each, its in zip(baselines, beside, strict=True)]
    sensors: Any = SimpleNamespace(read=lambda: None)
    left = list(values)

    def deal(most: int) -> list[ResolvedCase]:
        dealt, left[:] = left[:most], left[most:]
        return dealt

    return ReplayMeasurement(CASE, player(launcher), found, inputs, plan, sensors, None, deal).run(), inputs, baselines


def test_a_steady_kernel_needs_the_fewest_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    result, inputs, _ = timed(monkeypatch, Scripted(every(CALL_NS)))
    assert (len(result.calls.device_ns), result.stop_reason) == (12, "converged")
    assert (result.score.low_ns, result.score.median_ns, result.score.high_ns) == (CALL_NS,) * 3
    assert [(k.name, k.launches, k.time_ns) for k in result.kernels] == [("twice", 1, CALL_NS)]
    assert not result.doubts
    assert inputs.asked == ["next", "keep"] * 12 + ["check"], "every call has inputs of its own, and all are checked"


def test_the_first_call_in_another_place_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = TimingPlan(10, 10, 1000 * BLOCK_NS, 0.005)
    slow_first = every(9 * CALL_NS, *[CALL_NS] * 10)
    baseline = every(8 * CALL_NS, *[2 * CALL_NS] * 10)
    result, inputs, _ = timed(monkeypatch, Scripted(slow_first), Scripted(baseline), plan=plan, places=2)
    assert result.calls.device_ns == (CALL_NS,) * 20
    [paired] = result.baselines
    assert paired.calls.device_ns == (2 * CALL_NS,) * 20
    block = ["next", "keep", "again", "again", "next", "keep"]
    assert inputs.asked == [*["move", "next", "keep", "again", *block * 5] * 2, "check"]


VALUES = [replace(CASE.resolved, name=f"value {n}") for n in range(9)]


def test_calls_on_other_values_do_not_count_and_come_at_any_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    plan, moments = replace(PLAN, values_once=True), set()
    for _ in range(100):
        slow_there = Scripted(every(CALL_NS))
        result, inputs, _ = timed(monkeypatch, slow_there, Scripted(every(2 * CALL_NS)), plan=plan, values=VALUES)
        assert len(result.calls.device_ns) == 12
        assert [each for each in inputs.asked if each.startswith("value")] == ["value 0"]
        moments.add(inputs.asked.index("value 0"))
        assert inputs.asked[inputs.asked.index("value 0") + 1] == "keep"
    assert len(moments) == 6, "one of the six blocks is drawn"


def test_there_are_more_of_them_while_they_cost_little(monkeypatch: pytest.MonkeyPatch) -> None:
    _, inputs, _ = timed(monkeypatch, Scripted(every(CALL_NS)), values=VALUES)
    assert [each for each in inputs.asked if each.startswith("value")] == [value.name for value in VALUES]
    monkeypatch.setattr(replaying, "_VALUES_NS", 1)
    _, inputs, _ = timed(monkeypatch, Scripted(every(CALL_NS)), values=VALUES)
    assert sum(each.startswith("value") for each in inputs.asked) == 4
    monkeypatch.setattr(Inputs, "checking_ns", 4 * 3 * BLOCK_NS)
    _, inputs, _ = timed(monkeypatch, Scripted(every(CALL_NS)), values=VALUES)
    assert sum(each.startswith("value") for each in inputs.asked) == 8, "a quarter of what its own checks cost"


def test_a_fault_on_other_values_names_the_test_that_has_them(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = Scripted(iter([None]))
    plan = replace(PLAN, blocks_min=1)
    with pytest.raises(SubmissionFault, match=r"^with the values of test value 0: CUDA driver: it broke$"):
        timed(monkeypatch, broken, plan=plan, values=VALUES)
    hidden = [replace(VALUES[0], hidden=True)]
    with pytest.raises(SubmissionFault, match=r"^with the values of a hidden test: runtime error$"):
        timed(monkeypatch, Scripted(iter([None])), plan=plan, values=hidden)


def test_a_block_counts_for_the_mean_of_its_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    result, *_ = timed(monkeypatch, Scripted(every(CALL_NS, 3 * CALL_NS)), Scripted(every(CALL_NS, CALL_NS)))
    assert (result.score.low_ns, result.score.median_ns, result.score.high_ns) == (2 * CALL_NS,) * 3
    [paired] = result.baselines
    assert (paired.speedup.low, paired.speedup.median) == (pytest.approx(0.5 / 1.002), pytest.approx(0.5))


def test_a_kernel_that_varies_gets_more_calls_up_to_the_most(monkeypatch: pytest.MonkeyPatch) -> None:
    result, *_ = timed(monkeypatch, Scripted(varying()))
    assert (len(result.calls.device_ns), result.stop_reason) == (80, "unstable")


def test_the_budget_ends_it_but_not_before_the_fewest_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    result, *_ = timed(monkeypatch, Scripted(varying()), plan=TimingPlan(6, 40, 7 * BLOCK_NS, 0.005))
    assert len(result.calls.device_ns) == 14
    result, *_ = timed(monkeypatch, Scripted(varying()), plan=TimingPlan(6, 40, BLOCK_NS, 0.005))
    assert len(result.calls.device_ns) == 12


def test_baselines_alternate_with_the_submission_on_its_inputs(monkeypatch: pytest.MonkeyPatch) -> None:
    result, inputs, _ = timed(
        monkeypatch, Scripted(every(CALL_NS)), Scripted(every(3 * CALL_NS)), Scripted(every(2 * CALL_NS))
    )
    assert inputs.asked[:8] == ["next", "keep", *["again"] * 4, "next", "keep"]
    assert [(p.name, p.time_ns, p.speedup.median) for p in result.baselines] == [
        ("baseline0", 3 * CALL_NS, pytest.approx(3)),
        ("baseline1", 2 * CALL_NS, pytest.approx(2)),
    ]
    assert all(p.calls is not None and len(p.calls.device_ns) == 12 for p in result.baselines)


@pytest.mark.parametrize("times", [(CALL_NS, CALL_NS, CALL_NS, None), (None,)], ids=["at its fourth call", "at once"])
def test_a_failed_baseline_has_no_speedup(monkeypatch: pytest.MonkeyPatch, times: tuple[int | None, ...]) -> None:
    result, _, [baseline] = timed(monkeypatch, Scripted(every(CALL_NS)), Scripted(every(*times)))
    assert baseline.fault == "CUDA driver: it broke"
    assert result.baselines == ()
    assert result.stop_reason == "converged"


def test_a_submission_that_fails_ends_its_grading(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SubmissionFault, match="it broke"):
        timed(monkeypatch, Scripted(every(CALL_NS, None)))


def test_a_time_that_events_contradict_is_not_the_score(monkeypatch: pytest.MonkeyPatch) -> None:
    class Lying(Scripted):
        def play(self, *_: object) -> replies.Replayed:
            honest = super().play()
            return replies.Replayed(device_ns=1, event_ns=honest.event_ns, span_ns=honest.span_ns, nodes_ns=(1,))

    result, *_ = timed(monkeypatch, Lying(every(CALL_NS)))
    assert result.score.median_ns >= 0.99 * (CALL_NS + 3_000) - 2_900 - 1_500 - 1
    assert [doubt.code for doubt in result.doubts] == ["clocks_disagree"]
