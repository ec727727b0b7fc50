"""What the tests of gradings count as left behind."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from tests import leftovers
from tests.leftovers import nothing_left

RUNNER = "harness/runner/__main__.py"  # as a runner's command line has it


def sleeping(seconds: float) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", f"import time; time.sleep({seconds})", RUNNER]
    started = subprocess.Popen(command)
    time.sleep(0.3)
    return started


def orphaned(seconds: float) -> None:
    code = f"import time; time.sleep({seconds})"
    subprocess.run(f"{sys.executable} -c '{code}' {RUNNER} & sleep 0.3", shell=True, check=True)


def test_a_process_that_stays_is_left_behind() -> None:
    with pytest.raises(AssertionError), nothing_left():
        started = sleeping(30)
    started.kill()
    started.wait()


def test_one_that_was_there_before_is_not() -> None:
    started = sleeping(30)
    with nothing_left():
        started.kill()
        started.wait()


def test_one_without_parents_is_if_it_stays() -> None:
    with nothing_left():
        orphaned(0.6)
    with pytest.raises(AssertionError), nothing_left():
        orphaned(4)


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
