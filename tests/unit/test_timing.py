"""How large a batch is, and what is doubted about its time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from harness import wire
from harness.device import DEVICES, BatchSizes, nvml
from harness.judge.correctness.layout import Layout
from harness.judge.timing.plan import Plan, most_sets, sets_for
from harness.judge.timing.sealed.agreement import Agreement, Bounds, Gap
from harness.judge.timing.sealed.doubts import Measured, doubts
from harness.judge.timing.sealed.overhead import NullCost, Overhead, gap_of
from harness.problem import load
from harness.verdict import ClaimedLatency, SealedRound, Telemetry

PROBLEM = load(Path(__file__).parents[2] / "problems" / "vector_add")
GPU = Plan(200, 300_000_000, 3, 24, 2_000_000_000, 0.005, BatchSizes(12 << 30, 45 << 30, 50 << 20))
BOUNDS = Bounds(low_ns=580_000, usual_ns=600_000, spread_ns=20_000, noise_ns=30_000)


def layout(n: int) -> Layout:
    case = PROBLEM.benchmarks[-1].model_copy(update={"params": {"n": n}})
    return Layout(PROBLEM.resolve(case))


@pytest.mark.parametrize(
    ("n", "claimed_ns", "sets"),
    [
        (1 << 20, 4_800, 1024),  # 12 GiB hold no more of 12 MiB a call
        (1 << 21, 100_000, 200),  # 20 ms
        (1 << 10, 1_100, 2048),  # as many as there may be
        (1 << 10, 1_000_000, 100),  # twice the L2 would be 12,800 calls, and they would take 13 s
        (1 << 10, 10_000_000, 10),
        (1 << 28, 50_000_000, 2),  # never fewer than two
    ],
)
def test_a_batch_lasts_20_ms_and_no_more_than_100(n: int, claimed_ns: int, sets: int) -> None:
    found = sets_for(layout(n), claimed_ns, GPU)
    if n == 1 << 20:
        assert found == GPU.batch.memory_bytes // layout(n).bytes_per_set < 20_000_000 / claimed_ns
    else:
        assert found == sets
    assert found * claimed_ns <= max(100_000_000, 2 * claimed_ns)


def test_a_batch_of_many_tensors_has_few_sets() -> None:
    step = load(PROBLEM.directory.parent / "adam_multi_tensor")
    [case] = [case for case in step.benchmarks if case.name.startswith("2000 tensors")]
    many = Layout(step.resolve(case))
    assert most_sets(many, GPU.batch.memory_bytes) == sets_for(many, 60_000, GPU) == 2
    assert most_sets(layout(1024), GPU.batch.memory_bytes) == wire.MAX_SETS
    assert most_sets(layout(1024), 1) == 1


def test_the_overhead_grows_with_the_inputs_and_never_shrinks() -> None:
    small, large = NullCost(1 << 20, 400_000, 430_000), NullCost(1 << 33, 600_000, 650_000)
    overhead = Overhead(small, large, spread_ns=20_000, range_ns=30_000)
    sizes = [0, 1 << 20, 1 << 32, 1 << 33, 1 << 35]
    usual = [overhead.bounds(size, captured=0).usual_ns for size in sizes]
    assert usual == sorted(usual)
    assert usual[1] == 430_000
    assert usual[3] == 650_000
    assert usual[4] > 650_000, "larger inputs than were measured continue the line"
    noisy = Overhead(large, small, spread_ns=20_000, range_ns=30_000)
    assert noisy.bounds(1 << 35, captured=0).usual_ns >= 0
    ceiling = overhead.bounds(1 << 33, captured=0).high_ns
    assert overhead.bounds(1 << 33, captured=1000).high_ns == ceiling + 200_000


def test_what_a_round_takes_beyond_a_null_round_is_known_from_calls_of_our_own() -> None:
    null_ns = 600_000
    rounds = [(600_000 + 5_000_000 + more_ns, 5_000_000) for more_ns in (150_000, 250_000, 270_000, 240_000, 4_000_000)]
    gap = gap_of(rounds, null_ns)
    assert gap == Gap(usual_ns=250_000, error_ns=100_000)
    assert gap_of([(5_600_000, 5_000_000)] * 8, null_ns) == Gap(usual_ns=0, error_ns=10_000)
    assert gap_of([(5_000_000, 5_000_000)] * 8, null_ns).usual_ns == 0, "a clock that stopped early takes nothing off"
    null = NullCost(1 << 20, 400_000, 430_000)
    bounds = Overhead(null, null, spread_ns=20_000, range_ns=30_000, gap=gap).bounds(1 << 20, captured=0)
    assert (bounds.low_ns, bounds.usual_ns, bounds.gap) == (550_000, 680_000, gap)


def measured(per_call_ns: Sequence[int], hold: str = "memory", span_ns: int = 20_000, **sensed: Any) -> Measured:
    """A case of 200 calls a round, whose rounds took so long a call."""
    rounds = [
        SealedRound(
            calls=200, sets=213, seed=1, wall_ns=600_000 + 200 * ns, claimed_ns=200 * ns,
            claimed_span_ns=200 * ns + 12_000, telemetry=Telemetry(sm_mhz=1980, **sensed),
        )
        for ns in per_call_ns
    ]  # fmt: skip
    latency = ClaimedLatency.model_validate(
        {
            "hold": hold, "claimed_p10_ns": 9_000, "claimed_median_ns": 10_000, "claimed_p90_ns": 11_000,
            "claimed_samples_ns": (9_000, 10_000, 11_000), "claimed_span_ns": span_ns,
        }
    )  # fmt: skip
    agreement = Agreement.of(rounds, [600_000] * len(rounds), BOUNDS, plain=False)
    return Measured("cuda", latency, rounds, agreement, None, 1 << 30, 50 << 20)


def codes(found: Measured) -> set[str]:
    return {doubt.code for doubt in doubts(found)}


def test_a_quiet_measurement_is_not_doubted() -> None:
    assert codes(measured([100_000, 100_100, 99_900, 100_050, 99_950, 100_000])) == set()


@pytest.mark.parametrize(
    ("case", "code"),
    [
        (measured([100_000 + 800 * i for i in range(12)]), "drift"),
        (measured([100_000 + i % 5 for i in range(12)] + [110_000 + i % 5 for i in range(12)]), "two_modes"),
        (measured([100_000] * 6, throttle=("sw_power_cap",)), "throttled"),
        (measured([100_000] * 6, hold="none"), "synchronizes"),
        (measured([100_000] * 6, span_ns=200_000), "escaped_work"),
    ],
)
def test_every_reason_has_its_doubt(case: Measured, code: str) -> None:
    assert code in codes(case)


def test_work_after_a_call_is_not_looked_for_without_a_hold() -> None:
    assert "escaped_work" not in codes(measured([100_000] * 6, hold="none", span_ns=200_000))


class Nvml:
    """A driver that knows its clocks and its throttling, and has no temperature sensor."""

    NVML_CLOCK_SM, NVML_CLOCK_MEM, NVML_TEMPERATURE_GPU = 1, 2, 0

    class NVMLError(Exception):
        pass

    def nvmlDeviceGetClockInfo(self, device: str, clock: int) -> int:  # noqa: N802 - NVML's name
        return {1: 1755, 2: 3201}[clock]

    def nvmlDeviceGetPowerUsage(self, device: str) -> int:  # noqa: N802
        return 699_000

    def nvmlDeviceGetTemperature(self, device: str, sensor: int) -> int:  # noqa: N802
        raise self.NVMLError

    def nvmlDeviceGetCurrentClocksEventReasons(self, device: str) -> int:  # noqa: N802
        return 0x01 | 0x04 | 0x40


def test_sensors_tell_what_there_is_and_leave_out_the_rest() -> None:
    assert DEVICES["cpu"].sensors().read() is None
    read = nvml.NvmlSensors(Nvml(), "device").read()
    assert read == Telemetry(
        sm_mhz=1755, memory_mhz=3201, power_mw=699_000, throttle=("sw_power_cap", "hw_thermal_slowdown")
    )
    assert set(read.throttle) <= set(nvml._THROTTLE.values()), "an idle device is not throttled"
