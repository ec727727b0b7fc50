"""What counts as left behind by the tests of gradings."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import leftovers
from tests.leftovers import new

RUNNER = "harness/runner/__main__.py"  # as a runner's command line has it


def test_a_process_that_stays_is_left_behind_and_one_from_before_is_not(tmp_path: Path) -> None:
    code = [sys.executable, "-c", "print(flush=True); input()", RUNNER, str(tmp_path)]
    before = leftovers._processes()
    with subprocess.Popen(code, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as started:
        assert started.stdout is not None
        # Popen returns as soon as the program's files are open, when its command line may still be empty.
        assert started.stdout.readline(), "it does not run yet"
        [found] = [line for line in leftovers._processes() if str(tmp_path) in line]
        assert found not in before
        assert new({"processes": []}, {"processes": [found]}) == {"processes": [found]}
        assert new({"processes": [found]}, {"processes": [found]}) == {}
        started.kill()
    assert not [line for line in leftovers._processes() if str(tmp_path) in line]


@pytest.mark.parametrize(
    ("ancestors", "stays", "counts"),
    [
        pytest.param([7, os.getpid()], False, True, id="ours"),
        pytest.param([7, os.getppid()], True, False, id="another worker's"),
        pytest.param([7, 1], True, True, id="without parents"),
        pytest.param([7, 1], False, False, id="ending"),
    ],
)
def test_a_process_of_this_test_is_left_behind_and_one_without_parents_if_it_stays(
    ancestors: list[int], stays: bool, counts: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = (7, RUNNER)
    looks = iter([{process}, *[{process} if stays else set()] * leftovers._LOOKS])
    monkeypatch.setattr(leftovers, "_ours", lambda: next(looks))
    monkeypatch.setattr(leftovers, "_ancestors", lambda _pid: ancestors)
    monkeypatch.setattr(leftovers.time, "sleep", lambda _seconds: None)
    monkeypatch.setenv("PYTEST_XDIST_WORKER", "gw0")
    monkeypatch.setenv("PYTEST_XDIST_TESTRUNUID", "this")
    assert leftovers._processes() == ([f"7: {RUNNER}"] if counts else [])


@pytest.mark.parametrize(
    ("run", "worker", "other"),
    [("this", "gw1", True), ("this", "gw0", False), ("another", "gw1", False)],
)
def test_a_process_that_outlived_its_parents_is_of_the_worker_in_its_environment(
    run: str, worker: str, other: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTEST_XDIST_WORKER", "gw0")
    monkeypatch.setenv("PYTEST_XDIST_TESTRUNUID", "this")
    environment_variables = {"PYTEST_XDIST_TESTRUNUID": run, "PYTEST_XDIST_WORKER": worker}
    with subprocess.Popen(
        ["cat"], env=os.environ | environment_variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
    ) as started:
        assert started.stdin is not None
        assert started.stdout is not None
        started.stdin.write(b"\n")
        assert started.stdout.readline(), "it does not run yet"
        assert leftovers._of_another_worker([started.pid, 1]) is other
        started.kill()


@pytest.mark.parametrize(
    ("judge", "counts"),
    [(os.getpid(), True), (1 << 30, True), (os.getppid(), False)],
    ids=["ours", "ended", "another"],
)
def test_our_containers_and_orphans_are_left_behind(judge: int, counts: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leftovers.shutil, "which", lambda _name: "docker")
    monkeypatch.setattr(leftovers, "_labelled", lambda: {f"c0ffee {judge}"})
    monkeypatch.setattr(leftovers.time, "sleep", lambda _seconds: None)
    assert leftovers.leftovers()["containers"] == ([f"c0ffee {judge}"] if counts else [])
