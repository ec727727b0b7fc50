"""How many calls a round has, how many rounds a case gets, and which time follows, on a scripted clock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.device import DEVICES, BatchSizes
from harness.errors import HarnessError
from harness.judge.correctness.graded_case import GradedCase
from harness.judge.correctness.layout import Layout
from harness.judge.timing.dealt_values import DealtValues
from harness.judge.timing.plan import TimingPlan
from harness.judge.timing.rounds import benchmark
from harness.judge.timing.rounds.batch_size import max_calls, prepare_rounds, wanted_calls
from harness.judge.timing.rounds.benchmark import RoundsMeasurement
from harness.judge.timing.rounds.overhead import Overhead
from harness.problem import ResolvedCase, load
from harness.problem.reference import Reference
from harness.verdict import RoundsBenchmark, Telemetry, TimedRound
from harness.wire import commands

PROBLEM = load(Path(__file__).parents[2] / "problems" / "vector_add")
OVERHEAD_NS, CALL_NS, BLOCK_NS = 600_000, 100_000, 500_000_000
GPU = BatchSizes(12 << 30, 50 << 20)
PLAN = TimingPlan(3, 24, 3 * BLOCK_NS, 0.005)


def layout(n: int) -> Layout:
    case = PROBLEM.benchmarks[-1].model_copy(update={"params": {"n": n}})
    return Layout(PROBLEM.resolve(case))


@pytest.mark.parametrize(
    ("n", "call_ns", "calls"),
    [
        (1 << 21, 100_000, 200),  # 20 ms
        (1 << 10, 1_000_000, 100),  # twice the L2 would be 12,800 calls, and they would take 13 s
        (1 << 10, 10_000_000, 10),
        (1 << 28, 50_000_000, 1),
    ],
)
def test_a_round_lasts_20_ms_and_no_more_than_100(n: int, call_ns: int, calls: int) -> None:
    assert wanted_calls(layout(n), GPU, 7 * call_ns, 7) == calls


def test_a_round_that_took_no_time_does_not_divide_by_it() -> None:
    assert wanted_calls(layout(1 << 10), GPU, -5, 1) > commands.MAX_SETS


def test_memory_and_tensors_limit_a_round() -> None:
    step = load(PROBLEM.directory.parent / "adam_multi_tensor")
    [case] = [case for case in step.benchmarks if case.name.startswith("2000 tensors")]
    assert max_calls(Layout(step.resolve(case)), GPU.memory_bytes) == 2
    assert max_calls(layout(1024), GPU.memory_bytes) == commands.MAX_SETS
    assert max_calls(layout(1 << 20), GPU.memory_bytes) == GPU.memory_bytes // layout(1 << 20).bytes_per_set
    assert max_calls(layout(1024), 1) == 1


def test_the_overhead_is_a_round_of_one_call_less_the_call() -> None:
    assert Overhead.of([700_000] * 8, [800_000] * 8) == Overhead(600_000, 0)
    assert Overhead.of([700_000, 720_000] * 4, [800_000, 830_000] * 4) == Overhead(600_000, 10_000)


def test_a_host_that_is_late_once_changes_neither_the_overhead_nor_its_error() -> None:
    assert Overhead.of([700_000] * 7 + [30_000_000], [800_000] * 8) == Overhead(600_000, 0)


def test_what_a_busy_machine_adds_to_most_rounds_is_not_taken_off() -> None:
    busy = Overhead.of([9_000_000] * 7 + [700_000], [9_100_000] * 7 + [800_000])
    assert busy == Overhead(600_000, 600_000), "its error is no larger than it can be"
    assert Overhead.of([700_000] * 8, [9_000_000] * 8).usual_ns == 0


class Steady:
    """Rounds of a kernel that takes as long each time; `late_ns` says what the host adds, by number of the round.

    Of `every` round: by how much it is slower than the one before (`slower_ns`).
    """

    def __init__(self, call_ns: int = CALL_NS, late_ns: dict[int, int] | None = None, slower_ns: int = 0) -> None:
        self.call_ns, self.late_ns, self.slower_ns = call_ns, late_ns or {}, slower_ns
        self.calls = 200
        self.played = self.now_ns = 0
        self.left_ns = 60 * 10**9
        self.sizes: list[int] = []
        self.tried: list[tuple[int, list[str]]] = []  # after how many rounds, and which values
        self.sensed: dict[str, Any] = {}

    def prepare(self, calls: int) -> None:
        self.sizes.append(calls)
        self.calls = calls

    def play_with_values(self, values: Sequence[ResolvedCase]) -> None:
        self.now_ns += BLOCK_NS // 2
        self.left_ns -= BLOCK_NS // 2
        self.tried.append((self.played, [value.name for value in values]))

    def play(self, where: str, *, checked: bool = True) -> TimedRound:
        assert checked == (where != "warm-up round"), "every round that counts is checked"
        self.played += checked
        self.now_ns += BLOCK_NS // 2
        self.left_ns -= BLOCK_NS // 2
        took_ns = self.calls * self.call_ns + self.played * self.slower_ns + self.late_ns.get(self.played, 0)
        telemetry = Telemetry(sm_mhz=1980, **self.sensed)
        return TimedRound(calls=self.calls, seed=1, wall_ns=OVERHEAD_NS + took_ns, telemetry=telemetry)


def graded(n: int = 1 << 19) -> GradedCase:
    case = PROBLEM.benchmarks[-1].model_copy(update={"params": {"n": n}})
    return GradedCase(PROBLEM, Reference.load(PROBLEM), "cuda", PROBLEM.resolve(case))


@pytest.fixture(autouse=True)
def a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(DEVICES["cuda"]), "batch_sizes", lambda self: GPU)


@pytest.mark.parametrize(
    ("call_ns", "n", "sizes"),
    [
        (100_000, 1 << 19, [1, 16, 200]),
        (1_500, 1 << 20, [1, 16, 256, 767]),  # 12 GiB hold no more of 16 MiB each
        (15_000_000, 1 << 19, [1, 6]),  # more than the 20 ms ask for, for the cache's sake
        (60_000_000, 1 << 19, [1]),
    ],
)
def test_the_clock_decides_how_many_calls_a_round_has(call_ns: int, n: int, sizes: list[int]) -> None:
    rounds: Any = Steady(call_ns)
    prepare_rounds(rounds, graded(n), Overhead(OVERHEAD_NS, 10_000))
    assert rounds.sizes == sizes


def measured(
    rounds: Steady, monkeypatch: pytest.MonkeyPatch, n: int = 1 << 19, error_ns: int = 0, plan: TimingPlan = PLAN
) -> RoundsBenchmark:
    monkeypatch.setattr(benchmark, "time", SimpleNamespace(perf_counter_ns=lambda: rounds.now_ns))
    given: Any = rounds
    return RoundsMeasurement(given, graded(n), plan, Overhead(OVERHEAD_NS, error_ns), DealtValues()).run()


def test_one_round_among_those_that_count_has_other_values(monkeypatch: pytest.MonkeyPatch) -> None:
    moments = set()
    for _ in range(50):
        rounds = Steady()
        assert len(measured(rounds, monkeypatch, plan=replace(PLAN, values_once=True)).rounds) == 6
        [(after, values)] = rounds.tried
        assert set(values) == {"large magnitudes", "infinities", "hidden magnitudes"}
        moments.add(after)
    assert moments == {0, 2, 4}, "when it comes is drawn"


def test_other_values_without_a_call_in_a_round_come_later(monkeypatch: pytest.MonkeyPatch) -> None:
    rounds = Steady(call_ns=60_000_000)
    rounds.calls = 1
    measured(rounds, monkeypatch)
    assert [len(values) for _, values in rounds.tried] == [1, 1]
    assert rounds.tried[0][1] != rounds.tried[1][1]


def test_no_more_values_are_tried_than_the_time_limit_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    rounds = Steady(call_ns=60_000_000)
    rounds.calls, rounds.left_ns = 1, 8 * BLOCK_NS // 2
    measured(rounds, monkeypatch)
    assert (len(rounds.tried), rounds.left_ns) == (1, BLOCK_NS // 2)


def test_a_quiet_case_gets_six_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    result = measured(Steady(), monkeypatch)
    assert (len(result.rounds), result.stop_reason) == (6, "converged")
    assert result.score.low_ns == result.score.median_ns == result.score.high_ns == CALL_NS
    assert not result.doubts


def test_the_interval_includes_the_error_of_the_overhead(monkeypatch: pytest.MonkeyPatch) -> None:
    result = measured(Steady(), monkeypatch, error_ns=40_000)
    assert (result.score.low_ns, result.score.high_ns) == (CALL_NS - 200, CALL_NS + 200)
    unknown = measured(Steady(), monkeypatch, error_ns=200 * CALL_NS)
    assert (unknown.score.low_ns, unknown.stop_reason) == (0, "unstable")


def test_a_late_host_costs_more_rounds_and_counts_in_the_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    result = measured(Steady(late_ns={4: 30_000_000}), monkeypatch)
    assert len(result.rounds) == 10, "of six rounds no interval can do without one"
    assert result.score.low_ns == result.score.median_ns == result.score.high_ns == CALL_NS


def test_a_kernel_that_varies_gets_twelve_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    result = measured(Steady(slower_ns=2_000_000), monkeypatch)
    assert (len(result.rounds), result.stop_reason) == (12, "unstable")


def test_the_budget_ends_it_where_the_time_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    result = measured(Steady(slower_ns=50_000), monkeypatch)
    assert (len(result.rounds), result.stop_reason) == (8, "budget")


def test_a_submission_that_was_slow_only_at_first_is_measured_again(monkeypatch: pytest.MonkeyPatch) -> None:
    rounds = Steady()
    rounds.calls = 1  # as if its first calls had taken 20 ms each
    result = measured(rounds, monkeypatch)
    assert rounds.sizes == [16, 200]
    assert {each.calls for each in result.rounds} == {200}
    assert len(result.rounds) == 6


def test_a_time_of_nothing_is_no_time_of_the_submission(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(HarnessError, match=r"took no longer than the overhead of a round, 600,000 ns; .* grade again"):
        measured(Steady(call_ns=0), monkeypatch)


@pytest.mark.parametrize(
    ("rounds", "sensed", "n", "code"),
    [
        (Steady(slower_ns=50_000), {}, 1 << 19, "drift"),
        (Steady(), {"throttle": ("sw_power_cap",)}, 1 << 19, "throttled"),
        (Steady(), {}, 1 << 10, "warm_cache"),
    ],
)
def test_every_reason_has_its_doubt(
    rounds: Steady, sensed: dict[str, Any], n: int, code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rounds.sensed = sensed
    assert code in {doubt.code for doubt in measured(rounds, monkeypatch, n).doubts}
