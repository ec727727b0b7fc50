"""What the tests of gradings count as left behind."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests import leftovers
from tests.leftovers import nothing_left

RUNNER = "harness/runner/__main__.py"  # as a runner's command line has it


@pytest.fixture
def mine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """What marks the processes of one test: those of the others, on another worker, have no parents either."""
    every = leftovers._ours
    monkeypatch.setattr(leftovers, "_ours", lambda: {process for process in every() if str(tmp_path) in process[1]})
    return str(tmp_path)


def sleeping(seconds: float, mine: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", f"import time; time.sleep({seconds})", RUNNER, mine]
    started = subprocess.Popen(command)
    time.sleep(0.3)
    return started


def orphaned(seconds: float, mine: str) -> None:
    code = f"import time; time.sleep({seconds})"
    subprocess.run(f"{sys.executable} -c '{code}' {RUNNER} {mine} & sleep 0.3", shell=True, check=True)


def test_a_process_that_stays_is_left_behind(mine: str) -> None:
    with pytest.raises(AssertionError), nothing_left():
        started = sleeping(30, mine)
    started.kill()
    started.wait()


def test_one_that_was_there_before_is_not(mine: str) -> None:
    started = sleeping(30, mine)
    with nothing_left():
        started.kill()
        started.wait()


def test_one_without_parents_is_if_it_stays(mine: str) -> None:
    with nothing_left():
        orphaned(0.6, mine)
    with pytest.raises(AssertionError), nothing_left():
        orphaned(4, mine)


@pytest.mark.parametrize(
    ("judge", "counts"),
    [(os.getpid(), True), (1 << 30, True), (os.getppid(), False)],
    ids=["ours", "ended", "another"],
)
def test_a_container_of_ours_or_of_a_judge_that_has_ended_is(
    judge: int, counts: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leftovers.shutil, "which", lambda _name: "docker")
    monkeypatch.setattr(leftovers, "_labelled", lambda: {f"c0ffee {judge}"})
    assert leftovers.leftovers()["containers"] == ([f"c0ffee {judge}"] if counts else [])
