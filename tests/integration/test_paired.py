"""A grading beside baselines and under a roofline, with real runners."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import NoReturn

import pytest

from harness.device import DEVICES
from harness.device.cpu import cpu_name
from harness.errors import DeviceError, HarnessError
from harness.judge.timing.rounds import baseline, timing
from harness.judge.timing.rounds.overhead import Overhead
from harness.stats import median
from harness.verdict import Outcome, Verdict
from harness.verdict.roofline import Calibration
from kernelmark import grade
from kernelmark.diagnostics.selftest import PROBLEMS
from kernelmark.project.calibrations import store
from kernelmark.project.settings import Settings
from kernelmark.text import show

HERE = Path(__file__).parent
FAULTS = HERE / "faults"
LEAST_NS = 3_000_000
SLOW = f"""
import time

import torch


def scale(x, y):
    time.sleep({LEAST_NS} / 1e9)  # a busy machine's overhead is far less than a round of such calls
    torch.mul(x, 2, out=y)
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "kernelmark.toml").write_text(f'problems = "{PROBLEMS}"\n')
    folder = tmp_path / "reference" / "scale"
    folder.mkdir(parents=True)
    shutil.copy(FAULTS / "honest.py", folder / "eager.py")
    (tmp_path / "slow.py").write_text(SLOW)
    shutil.copy(FAULTS / "wrong_values.py", folder / "wrong.py")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def graded(*baselines: str) -> Verdict:
    return grade("scale", Path("slow.py"), device="cpu", sandbox="process", effort="quick", baselines=baselines)


def calibrated(project: Path, rate: int, uuid: str | None = None) -> None:
    """Store a calibration of this CPU, which moves and does `rate` a second."""
    store(
        Settings(root=project),
        Calibration(
            device_name=cpu_name(), torch="2", created_at=datetime.now(UTC), cache_bytes=0, copy_bytes_per_s=rate,
            read_bytes_per_s=rate, flops_per_s={"float32": rate}, memory_spread=0.0,
            arithmetic_spread=0.0, device_uuid_sha256=uuid,
        ),
    )  # fmt: skip


def test_a_baseline_alternates_and_one_that_is_wrong_costs_nothing_but_its_speedup(project: Path) -> None:
    verdict = graded("eager", "wrong")
    assert verdict.outcome is Outcome.ACCEPTED, verdict.message
    [benchmark] = verdict.benchmarks
    [eager] = benchmark.baselines
    assert eager.name == "eager"
    assert len(eager.rounds) == len(benchmark.rounds) >= 6, "each round of the submission has one beside it"
    assert {r.seed for r in eager.rounds}.isdisjoint(r.seed for r in benchmark.rounds)
    assert eager.time_ns == round(median(r.call_ns(benchmark.overhead_ns) for r in eager.rounds))
    [speedup] = verdict.speedups
    assert speedup.ratio.median == pytest.approx(eager.speedup.median)
    [doubt] = verdict.doubts
    assert doubt.code == "no_baseline"
    assert "wrong" in doubt.text
    assert verdict.requested_baselines == ("eager", "wrong")


def test_a_baseline_for_which_memory_is_short_costs_nothing_but_its_speedup(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lacking(*_: object) -> NoReturn:
        raise DeviceError("no arena of 1,024 bytes (out of memory)", "use a larger device")

    monkeypatch.setattr(baseline, "prepare_rounds", lacking)
    verdict = graded("eager")
    assert verdict.outcome is Outcome.ACCEPTED, verdict.message
    [doubt] = verdict.doubts
    assert "no arena of 1,024 bytes" in doubt.text


DENSE = """
[[baselines]]
name = "dense"
kind = "dense"
entry = "tripled"
tensors = [
    { name = "a", role = "input", shape = ["n"], dtype = "float64" },
    { name = "b", role = "output", shape = ["n"], dtype = "float64" },
]
"""


def test_a_baseline_that_computes_something_else_is_timed_and_says_so(project: Path) -> None:
    problem = project / "own" / "scale"
    shutil.copytree(PROBLEMS / "scale", problem)
    with (problem / "problem.toml").open("a") as toml:
        toml.write(DENSE)
    (project / "kernelmark.toml").write_text('problems = "own"\n')
    (project / "reference" / "scale" / "dense.py").write_text("def tripled(a, b):\n    b.copy_(a * 3)\n")
    verdict = graded("dense", "eager")
    assert verdict.outcome is Outcome.ACCEPTED, verdict.message
    label = "dense (another computation)"
    assert (verdict.requested_baselines, verdict.doubts) == ((label, "eager"), ())
    assert [speedup.baseline for speedup in verdict.speedups] == [label, "eager"]
    assert [baseline.name for baseline in verdict.benchmarks[0].baselines] == [label, "eager"]
    assert f"× {label}" in "\n".join(map(str, show.verdict(verdict)))


@pytest.mark.full
def test_a_share_of_the_roofline_is_told_and_what_beats_it_is_rejected(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = DEVICES["cpu"].facts()._replace(device_uuid_sha256="a" * 64)  # GPUs have one, CPUs have not
    monkeypatch.setattr(DEVICES["cpu"], "facts", lambda: facts)
    calibrated(project, 10**13, "a" * 64)
    honest = graded("none")
    assert honest.outcome is Outcome.ACCEPTED, honest.message
    roofline = honest.benchmarks[0].roofline
    assert 0 < roofline.share < 1
    calibrated(project, 10**6, "a" * 64)
    beaten = graded("none")
    assert beaten.outcome is Outcome.REJECTED
    assert "this device needs" in beaten.message


@pytest.mark.full
def test_an_overhead_that_other_programs_made_too_large_is_measured_again(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    true_of, said = timing.measure_overhead, [Overhead(10**9, 0)]
    monkeypatch.setattr(timing, "measure_overhead", lambda *given: said.pop() if said else true_of(*given))
    verdict = graded("eager")
    assert verdict.outcome is Outcome.ACCEPTED, verdict.message
    [benchmark] = verdict.benchmarks
    assert benchmark.overhead_ns < 10**9
    assert benchmark.score.median_ns >= LEAST_NS
    assert len(benchmark.baselines) == 1
    monkeypatch.setattr(timing, "measure_overhead", lambda *given: Overhead(10**9, 0))
    with pytest.raises(HarnessError, match="no longer than the overhead of a round, 1,000,000,000 ns"):
        graded("none")


@pytest.mark.full
def test_a_device_that_only_shares_its_name_with_the_calibrated_one_is_not_bound_by_it(project: Path) -> None:
    calibrated(project, 10**6)
    verdict = graded("none")
    assert verdict.outcome is Outcome.ACCEPTED, verdict.message
    roofline = verdict.benchmarks[0].roofline
    assert roofline.share > 1
