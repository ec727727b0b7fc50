"""The metrics of a case: their values, what they say where there is none, and that their columns do not collide."""

from __future__ import annotations

import pytest

from harness.verdict import BenchmarkResult, Roofline
from kernelmark.text import profiles
from kernelmark.text.standings import board
from kernelmark.text.times import memory
from leaderboard.publishing.export import _CaseRow
from leaderboard.text.metrics import METRICS, CaseMetric
from tests.ranked import rank
from tests.verdicts import REPLAYED, accepted, chained


def case(**changes: object) -> BenchmarkResult:
    measured = accepted(score_ns=2000, modes=("calls",), roofline=Roofline(share=0.914, limit="memory")).benchmarks[0]
    return measured.model_copy(update={"minimum_bytes": 3_000_000, "minimum_flops": 500_000, **changes})


def replayed(**changes: object) -> BenchmarkResult:
    return accepted(modes=REPLAYED).benchmarks[0].model_copy(update=changes)


def test_memory_is_the_scratch_of_a_replayed_call() -> None:
    memory = of("memory")
    assert memory.cell(replayed(scratch_bytes=2_097_152)) == "2,097,152 B"
    assert memory.cell(replayed(scratch_bytes=0)) == "0 B"
    assert [memory.cell(each) for each in (replayed(), case())] == ["", ""], "older runs, and plain calls"


def test_peak_memory_is_what_a_call_allocates_itself() -> None:
    peak = of("peak memory")
    assert peak.cell(replayed(peak_bytes=23_068_672, scratch_bytes=348_000_000)) == "23.1 MB"
    assert [peak.cell(each) for each in (replayed(), case())] == ["", ""], "older runs, and plain calls"


def test_launches_bound_a_call_only_where_the_host_takes_longer() -> None:
    said = of("host time").sentence
    gpu_ns = replayed().score.median_ns
    assert [said(replayed(host_ns=gpu_ns + more)).endswith("would bound it") for more in (1, 0, -1)] == [
        True,
        False,
        False,
    ]
    assert said(replayed(host_ns=gpu_ns)).startswith("the host takes ")
    assert [said(other) for other in (replayed(), case())] == ["", ""], "older runs, and plain calls"


def test_a_profile_says_how_long_the_host_took() -> None:
    verdict, changed = accepted(modes=REPLAYED), replayed(host_ns=81_000)
    of_one = "\n".join(profiles.measured(verdict.model_copy(update={"benchmarks": (changed,)})))
    assert of_one.count(of("host time").sentence(changed)) == 1
    assert "the host takes" not in "\n".join(profiles.measured(verdict))


def test_a_board_shows_peak_memory_if_asked() -> None:
    first, *others = accepted(modes=REPLAYED).benchmarks
    cases = (
        first.model_copy(update={"peak_bytes": 5 << 20}),
        *(b.model_copy(update={"peak_bytes": 8}) for b in others),
    )
    tables = rank(chained(accepted(modes=REPLAYED).model_copy(update={"benchmarks": cases})))
    plain, with_memory = ("\n".join(map(str, board(tables, memory=memory))) for memory in (False, True))
    assert "memory" not in plain
    assert "peak memory" in with_memory
    assert "5.24 MB" in with_memory, "the most of all cases"
    [older] = rank(chained(accepted(modes=REPLAYED)))
    assert older.rows[0].peak_bytes is None


def test_a_comparison_tells_the_peak_memory_of_both() -> None:
    verdict = accepted(modes=REPLAYED, speedups={"eager": 1.5})
    [case] = verdict.benchmarks[:1]
    baselines = tuple(b.model_copy(update={"peak_bytes": 348_000_000}) for b in case.baselines)
    changed = case.model_copy(update={"peak_bytes": 0, "baselines": baselines})
    shown = list(memory(verdict.model_copy(update={"benchmarks": (changed,)})))
    assert shown == [f"{case.name}: 0 B, eager 348 MB"]
    assert list(memory(verdict)) == [], "older runs"


def of(name: str) -> CaseMetric:
    return next(metric for metric in METRICS if metric.name == name)


@pytest.mark.parametrize(
    ("name", "values", "cell"),
    [
        ("roofline", [0.914, "memory"], "91 % memory"),
        ("traffic", [1.5e12], "1500 GB/s"),
        ("work", [2.5e11], "250 GFLOP/s"),
    ],
)
def test_a_metric_follows_from_the_case(name: str, values: list[float | str], cell: str) -> None:
    metric = of(name)
    assert [column.value(case()) for column in metric.columns] == pytest.approx(values)
    assert metric.cell(case()) == cell
    assert metric.sentence(case())


def test_a_high_rate_has_no_exponent() -> None:
    fast = case()
    fast = fast.model_copy(update={"minimum_flops": 654_321 * fast.score.median_ns})
    assert of("work").cell(fast) == "654,321 GFLOP/s"


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_a_case_without_it_has_empty_cells(metric: CaseMetric) -> None:
    bare = case(roofline=None, minimum_bytes=None, minimum_flops=None)
    assert {column.value(bare) for column in metric.columns} == {None}
    assert (metric.cell(bare), metric.sentence(bare)) == ("", "")


def test_no_column_takes_the_name_of_another() -> None:
    keys = [column.key for metric in METRICS for column in metric.columns]
    assert len(keys) == len(set(keys))
    assert not set(keys) & set(_CaseRow.model_fields)
