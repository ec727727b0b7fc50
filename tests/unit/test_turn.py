"""Gradings on one GPU take turns; on a CPU, and on another GPU, nobody waits."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from harness.judge import turn as module
from harness.judge.turn import take_turn
from harness.sandbox import gpu

HOLDER = """
import sys, signal
from pathlib import Path
from harness.judge import turn as module
from harness.sandbox import gpu
module._DIRECTORY = Path(sys.argv[1])
gpu.address_in_use = lambda: "0000:1b:00.0"
with module.take_turn("cuda", lambda: None):
    print("held", flush=True)
    signal.pause()
"""


@pytest.fixture(autouse=True)
def one_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_DIRECTORY", tmp_path)
    monkeypatch.setattr(gpu, "address_in_use", lambda: "0000:1b:00.0")


def nobody_waits() -> None:
    pytest.fail("it waited")


def test_the_second_grading_on_a_gpu_waits_for_the_first() -> None:
    waits, entered = threading.Event(), threading.Event()

    def second() -> None:
        with take_turn("cuda", waits.set):
            entered.set()

    thread = threading.Thread(target=second)
    with take_turn("cuda", nobody_waits):
        thread.start()
        assert waits.wait(5)
        assert not entered.wait(0.1)
    assert entered.wait(5)
    thread.join()


def test_a_judge_that_is_killed_keeps_nobody_waiting(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", HOLDER, str(tmp_path)], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        assert _busy()
        holder.kill()
        holder.wait()
    with take_turn("cuda", nobody_waits):
        pass


def _busy() -> bool:
    """Whether somebody holds the GPU now."""
    lock = module._open(module._DIRECTORY / "kernelmark-gpu-0000:1b:00.0.lock")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(lock)
    return False


def test_neither_a_cpu_nor_another_gpu_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    with take_turn("cuda", nobody_waits):
        with take_turn("cpu", nobody_waits):
            pass
        monkeypatch.setattr(gpu, "address_in_use", lambda: "0000:43:00.0")
        with take_turn("cuda", nobody_waits):
            pass
