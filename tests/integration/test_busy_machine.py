"""A machine that others use while a kernel is timed is a doubt; a quiet one is none."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from harness.judge.timing import neighbours
from harness.judge.timing.doubts import busy_machine
from harness.judge.timing.neighbours import Neighbours, busy
from harness.problem import load
from harness.verdict import SandboxName, Verdict
from kernelmark.diagnostics.selftest import PROBLEMS
from tests.grading import graded

pytestmark = pytest.mark.alone
ROOT = Path(__file__).resolve().parents[2]
PROBLEM = load(PROBLEMS / "double")
KERNEL = "def twice(x, y):\n    y.copy_(2 * x)\n"
QUIET = 0.05  # half of what is a doubt


@contextmanager
def loops() -> Iterator[None]:
    """A busy loop for each CPU."""
    children = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in os.sched_getaffinity(0)]
    try:
        yield
    finally:
        for child in children:
            child.kill()
            child.wait()


def doubted(verdict: Verdict) -> list[str]:
    return [doubt.text for case in verdict.benchmarks for doubt in case.doubts if doubt.code == "busy_machine"]


def others_now() -> float:
    """The share of the CPU that others use while nothing is graded."""
    neighbours = Neighbours("cpu", ())
    before = neighbours.read()
    time.sleep(0.5)
    return (neighbours.since(before) or (1.0, 0))[0]


@pytest.mark.full
@pytest.mark.parametrize("sandbox", [pytest.param("bwrap", marks=pytest.mark.bwrap),
                                     pytest.param("process", marks=pytest.mark.full),
                                     pytest.param("docker", marks=[pytest.mark.docker, pytest.mark.full])])  # fmt: skip
def test_a_grading_beside_busy_loops_is_doubted_and_one_alone_is_not(sandbox: SandboxName) -> None:
    with loops():
        beside = graded(PROBLEM, KERNEL, sandbox)
    assert beside.score is not None, beside.message
    assert doubted(beside), "the loops were not seen"
    found = list[list[str]]()
    for _ in range(10):  # what else this machine does, and for how long, is not ours to decide
        if others_now() > QUIET:
            continue
        found.append(doubted(graded(PROBLEM, KERNEL, sandbox)))
        if not found[-1]:
            return
    assert len(found) < 5, f"{found}, though nothing else ran before"
    pytest.skip("others use this machine")


STAT = """cpu  300 30 60 9000 50 6 3 9 0 0
cpu0 100 10 20 3000 50 2 1 3 0 0
cpu1 200 20 40 6000 0 4 2 6 100 0
intr 1 2 3
"""


@pytest.mark.parametrize(("cpus", "ticks"), [({0}, 136), ({1}, 272), ({0, 1}, 408)])
def test_what_the_kernel_tells_of_some_cpus(cpus: set[int], ticks: int) -> None:
    assert busy(STAT, cpus) == ticks * 1_000_000_000 // os.sysconf("SC_CLK_TCK")


def test_a_cpu_that_is_not_told_of_is_not_taken_for_idle() -> None:
    with pytest.raises(ValueError, match="every CPU"):
        busy(STAT, {0, 2})
    assert Neighbours("cpu", [lambda: None]).read() is None, "a sandbox that cannot be asked"
    assert Neighbours("cuda", ()).read() is None
    assert Neighbours("cpu", ()).since(None) is None


@pytest.mark.parametrize(
    ("judge_s", "sandbox_s", "share"),
    [(0.5, 1.5, 0.0), (0.5, 0.5, 0.5), (0.0, 0.0, 1.0), (1.5, 1.5, 0.0)],
    ids=["all of it its own", "half of it", "none of it", "counted in coarser steps"],
)
def test_what_a_grading_uses_itself_is_not_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, judge_s: float, sandbox_s: float, share: float
) -> None:
    """In one second both CPUs were busy for all of it."""
    stat, used, now = tmp_path / "stat", {"judge": 7.0, "sandbox": 3.0}, 100.0
    tick = os.sysconf("SC_CLK_TCK")
    monkeypatch.setattr(neighbours, "_STAT", stat)
    monkeypatch.setattr(neighbours.os, "sched_getaffinity", lambda _: {0, 1})
    clock = SimpleNamespace(process_time_ns=lambda: int(1e9 * used["judge"]), perf_counter_ns=lambda: int(1e9 * now))
    monkeypatch.setattr(neighbours, "time", clock)
    stat.write_text("cpu0 500 0 0 900 0 0 0 0 0 0\ncpu1 300 0 0 900 0 0 0 0 0 0\n")
    meter = Neighbours("cpu", [lambda: int(1e9 * used["sandbox"])])
    before = meter.read()
    now, used = now + 1, {"judge": 7.0 + judge_s, "sandbox": 3.0 + sandbox_s}
    stat.write_text(f"cpu0 {500 + tick} 0 0 900 0 0 0 0 0 0\ncpu1 300 0 0 900 0 0 0 {tick} 0 0\n")
    found = meter.since(before)
    assert found == pytest.approx((share, share * 2e9), rel=1e-6)
    assert bool(busy_machine(found)) == (share > 0)


@pytest.mark.parametrize(
    ("others", "doubts"), [(None, 0), ((0.09, 10**9), 0), ((0.5, 90_000_000), 0), ((0.11, 110_000_000), 1)]
)
def test_how_much_is_a_doubt(others: tuple[float, int] | None, doubts: int) -> None:
    assert len(busy_machine(others)) == doubts
