"""A worker that hangs is ended and shows the stacks of its threads; one that makes progress is not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from harness.problem import load
from kernelmark.grading.fleet.watchdog import Watchdog

PROBLEM = Path(__file__).resolve().parents[2] / "problems/vector_add"
PROGRAM = f"""
import ctypes, time
from pathlib import Path
from harness.problem import load
from kernelmark.grading.fleet.watchdog import Watchdog
problem = load(Path({str(PROBLEM)!r}))
limits = problem.limits.model_copy(update=dict(build_s=0.2, call_s=0.01, time_s=0.2))
object.__setattr__(problem, "limits", limits)
watchdog = Watchdog(spare_s=2.8)
def hangs():
    {{}}
watchdog.expect(problem)
hangs()
print("still there")
"""


def run(statement: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", PROGRAM.format(statement)], capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.parametrize("hangs", ["time.sleep(30)", "ctypes.PyDLL(None).sleep(30)"], ids=["waits", "keeps the GIL"])
def test_a_process_in_which_nothing_happens_is_ended_and_shows_its_stacks(hangs: str) -> None:
    ended = run(hangs)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert "in hangs" in ended.stderr


@pytest.mark.parametrize(
    "goes_on",
    ["[(time.sleep(0.3), watchdog.reset()) for _ in range(12)]", "watchdog.stop(); time.sleep(4)"],
    ids=["moves on", "has nothing to do"],
)
def test_a_process_that_moves_on_is_not_ended(goes_on: str) -> None:
    ended = run(goes_on)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "still there\n", "")


def test_the_time_is_that_of_the_longest_step(monkeypatch: pytest.MonkeyPatch) -> None:
    timers: list[float] = []
    monkeypatch.setattr("faulthandler.dump_traceback_later", lambda seconds, **_: timers.append(seconds))
    problem = load(PROBLEM)
    watched = Watchdog(spare_s=100)
    watched.expect(problem)
    limits = problem.limits
    assert timers == [100 + max(limits.build_s, limits.time_s, limits.call_s * len(problem.tests))]
    short = limits.model_copy(update={"build_s": 1.0, "call_s": 0.1, "time_s": 1.0})
    object.__setattr__(problem, "limits", short)
    watched.expect(problem)
    assert timers[1] == timers[0], "another job may be in a longer step"
