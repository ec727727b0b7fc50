"""Workers of one device share the times of baselines: each is measured once, even if a worker is killed."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from pathlib import Path

import pytest

from harness.judge.timing.overall import KnownTimes
from harness.verdict import Interval
from kernelmark.grading.fleet.known_times import once

TIMES = KnownTimes(
    "eager", "0" * 64, "replayed", {"large": Interval(median_ns=20, low_ns=19, high_ns=21, confidence=0.95)}
)


def _measure_and_be_killed(folder: Path) -> None:
    once(folder, "eager", lambda: os.kill(os.getpid(), signal.SIGKILL) or TIMES)


def test_two_requests_for_the_same_baseline_measure_it_once(tmp_path: Path) -> None:
    measuring, other_came, calls = threading.Event(), threading.Event(), []
    found: list[KnownTimes | str] = []

    def measure() -> KnownTimes:
        calls.append("measured")
        measuring.set()
        assert other_came.wait(60)
        return TIMES

    first = threading.Thread(target=lambda: found.append(once(tmp_path, "eager", measure)))
    first.start()
    assert measuring.wait(60)
    second = threading.Thread(target=lambda: found.append(once(tmp_path, "eager", measure)))
    second.start()
    other_came.set()
    for thread in (first, second):
        thread.join(60)
    assert (found, calls) == ([TIMES, TIMES], ["measured"])
    assert once(tmp_path, "compiled", lambda: "it failed") == "it failed"
    assert once(tmp_path, "compiled", measure) == "it failed"


def test_after_a_killed_measurement_the_next_process_measures(tmp_path: Path) -> None:
    process = multiprocessing.get_context("spawn").Process(target=_measure_and_be_killed, args=(tmp_path,))
    process.start()
    process.join(60)
    assert process.exitcode == -signal.SIGKILL
    assert once(tmp_path, "eager", lambda: TIMES) == TIMES


@pytest.mark.parametrize("content", [b"", b"{", b'{"baseline": 1}'])
def test_a_truncated_result_is_measured_again(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "eager").write_bytes(content)
    assert once(tmp_path, "eager", lambda: TIMES) == TIMES


def test_without_a_folder_each_measures(tmp_path: Path) -> None:
    assert once(None, "eager", lambda: TIMES) == TIMES
    assert once(tmp_path / "absent", "eager", lambda: TIMES) == TIMES
