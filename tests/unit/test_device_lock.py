"""Gradings on one device take turns; gradings on different devices do not wait for each other."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from harness import judge
from harness.judge.timing import device_lock as module
from harness.judge.timing.device_lock import lock_alone, lock_at_once, lock_shared, waiting_before
from harness.problem import load
from harness.sandbox import gpu, provider
from harness.submission import Submission
from harness.verdict import DeviceKind, Outcome, Stage, Verdict
from kernelmark.diagnostics.selftest import PROBLEMS
from kernelmark.record import publishing
from leaderboard.record.ledger import JsonlLedger

PROBLEM = load(PROBLEMS / "double")
HOLDER = """
import sys, signal
from pathlib import Path
from harness.judge.timing import device_lock as module
from harness.sandbox import gpu
module._DIRECTORY = Path(sys.argv[1])
gpu.address_in_use = lambda: "0000:1b:00.0"
with module.lock_alone("cuda", lambda: None):
    print("held", flush=True)
    signal.pause()
"""


@pytest.fixture(autouse=True)
def one_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_DIRECTORY", tmp_path)
    monkeypatch.setattr(gpu, "address_in_use", lambda: "0000:1b:00.0")


def nobody_waits() -> None:
    pytest.fail("it waited")


@pytest.mark.parametrize(
    "locked",
    [
        lambda _: lock_alone("cpu", nobody_waits),
        lambda folder: JsonlLedger(folder / "double.jsonl")._locked(),
        publishing._locked,
    ],
)
def test_no_lock_stays_with_a_process_that_is_forked_meanwhile(
    locked: Callable[[Path], AbstractContextManager[object]], tmp_path: Path
) -> None:
    """Such as a DataLoader's worker, in a program that grades."""
    with locked(tmp_path):
        child = os.fork()
        while not child:
            signal.pause()

    def again() -> None:
        with locked(tmp_path):
            free.set()

    free = threading.Event()
    try:
        (other := threading.Thread(target=again)).start()
        assert free.wait(60)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        other.join()


def in_a_thread(
    turn: Callable[..., AbstractContextManager[None]], device: DeviceKind = "cuda"
) -> tuple[threading.Event, threading.Event]:
    """Somebody else who wants a turn: events for that he waits, and for that he has had it."""
    waits, entered = threading.Event(), threading.Event()

    def other() -> None:
        with turn(device, waits.set):
            entered.set()

    threading.Thread(target=other, daemon=True).start()
    return waits, entered


@pytest.mark.parametrize(
    ("first", "second", "device"),
    [
        (lock_alone, lock_alone, "cuda"),
        (lock_alone, lock_alone, "cpu"),
        (lock_alone, lock_shared, "cuda"),
        (lock_shared, lock_alone, "cuda"),
    ],
)
def test_nothing_else_runs_while_a_kernel_is_timed(first: Any, second: Any, device: DeviceKind) -> None:
    with first(device, nobody_waits):
        waits, entered = in_a_thread(second, device)
        assert waits.wait(60)
        assert not entered.wait(0.1)
    assert entered.wait(60)


def test_a_shared_lock_does_not_overtake_a_waiting_exclusive_one() -> None:
    with lock_shared("cuda", nobody_waits):
        alone_waits, alone = in_a_thread(lock_alone)
        assert alone_waits.wait(60)
        share_waits, shares = in_a_thread(lock_shared)
        assert share_waits.wait(60)
        assert not alone.is_set()
        assert not shares.wait(0.1)
    assert alone.wait(60)
    assert shares.wait(60)


def test_waiting_exclusive_locks_go_before_the_next_shared_one() -> None:
    turns: list[str] = []
    waiting = threading.Semaphore(0)

    def other(turn: Callable[..., AbstractContextManager[None]], name: str) -> None:
        with turn("cuda", waiting.release):
            turns.append(name)

    order = [(lock_alone, "timed 1"), (lock_shared, "tested"), (lock_alone, "timed 2")]
    threads = [threading.Thread(target=other, args=each) for each in order]
    with lock_shared("cuda", nobody_waits):
        for thread in threads:
            thread.start()
            assert waiting.acquire(timeout=60)
    for thread in threads:
        thread.join()
    assert turns[-1] == "tested"


def test_the_lock_of_a_killed_judge_is_released(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", HOLDER, str(tmp_path)], stdout=subprocess.PIPE, text=True) as holder:
        try:
            assert holder.stdout.readline() == "held\n"
            assert _busy()
        finally:
            holder.kill()
    with lock_alone("cuda", nobody_waits):
        pass


def test_the_judges_ahead_in_the_queue_are_counted(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLDER, str(tmp_path)]
    assert waiting_before("cuda") == 0
    with contextlib.ExitStack() as ended:
        for others in (0, 1, 2):
            judge = ended.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE))
            ended.callback(judge.kill)
            until = time.monotonic() + 60
            while not (_busy() and waiting_before("cuda") == others):
                assert time.monotonic() < until, waiting_before("cuda")
                time.sleep(0.05)
        assert waiting_before("cpu") == 0


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


def test_shared_locks_and_other_devices_do_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    with lock_shared("cuda", nobody_waits), lock_shared("cuda", nobody_waits), lock_alone("cpu", nobody_waits):
        pass
    with lock_alone("cuda", nobody_waits):
        monkeypatch.setattr(gpu, "address_in_use", lambda: "0000:43:00.0")
        with lock_alone("cuda", nobody_waits):
            pass


@pytest.mark.parametrize("umask", [0o022, 0o077])
def test_judges_of_other_users_can_take_the_lock(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        with lock_alone("cpu", nobody_waits):
            pass
    finally:
        os.umask(before)
    locks = list(tmp_path.glob("kernelmark-*.lock"))
    assert [lock.stat().st_mode & 0o777 for lock in locks] == [0o444] * 3, "the gate, the queue, and the device"


def test_lock_at_once_succeeds_only_on_an_idle_device() -> None:
    with lock_at_once("cpu") as free:
        assert free
        with lock_at_once("cpu") as free:
            assert not free
    with lock_alone("cuda", nobody_waits), lock_at_once("cuda") as free:
        assert not free
    with lock_shared("cuda", nobody_waits), lock_at_once("cuda") as free:
        assert not free
    with lock_at_once("cuda") as free:
        assert free


RIGHT, WRONG, BROKEN = "def twice(x, y): y.copy_(2 * x)", "def twice(x, y): y.copy_(3 * x)", "def twice(x, y:"


def graded(source: str, tell: Callable[[judge.Progress], None] = lambda _: None) -> Verdict:
    kernel = Submission.of(source, "py", author="ada")
    return judge.grade(
        judge.Setup(PROBLEM, kernel, provider=provider("process"), device="cpu", effort="quick", on_progress=tell)
    )


def test_a_submission_that_fails_on_a_cpu_does_not_wait() -> None:
    with lock_alone("cpu", nobody_waits):
        assert graded(BROKEN).outcome is Outcome.COMPILE_ERROR
        assert graded(WRONG).outcome is Outcome.WRONG_ANSWER


def test_a_right_kernel_waits_until_it_can_be_timed_and_says_so() -> None:
    steps, waits = list[judge.Progress](), threading.Event()
    done = list[Verdict]()

    def tell(step: judge.Progress) -> None:
        steps.append(step)
        if "waiting" in step.label:
            waits.set()

    thread, began_ns = threading.Thread(target=lambda: done.append(graded(RIGHT, tell))), time.perf_counter_ns()
    with lock_alone("cpu", nobody_waits):
        thread.start()
        assert waits.wait(120)
        assert steps[-1] == judge.Progress(Stage.TIME, 0, 0, "waiting: another grading is being timed on this CPU")
        assert {step.stage for step in steps[:-1]} == {Stage.BUILD, Stage.TEST}
        waits_ns = time.perf_counter_ns()
        thread.join(2.0)
        assert thread.is_alive()
        waited_ns = time.perf_counter_ns() - waits_ns
    thread.join(120)
    [verdict] = done
    assert verdict.outcome is Outcome.ACCEPTED, verdict.message
    assert (steps[-1].stage, steps[-1].total > 0) == (Stage.TIME, True)
    assert verdict.duration_ns < time.perf_counter_ns() - began_ns - waited_ns, "waiting is no part of a grading"
