"""How a machine is divided: processors among workers, and in a worker; and room on its GPU, in order and never more
than there is.
"""

from __future__ import annotations

import math
import os
import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from harness.sandbox import Launch
from harness.sandbox.processors import OnProcessors
from kernelmark.grading.fleet.shares import CpuShare, WeightedSemaphore, divide, local_cpus, sandboxes_in
from tests.workers import until

GIB = 1 << 30


def test_judge_and_runners_have_processors_of_their_own_unless_they_are_few() -> None:
    assert CpuShare.of(range(16)) == CpuShare(judge=(0, 1, 2, 3), runners=tuple(range(4, 16)))
    assert CpuShare.of({0, 1}) is None


def test_workers_get_the_processors_near_to_their_device() -> None:
    assert divide([{0, 1, 2, 3}, {0, 1, 2, 3}]) == [(0, 2), (1, 3)], "half each"
    assert divide([{0, 1}, {2, 3}]) == [(0, 1), (2, 3)], "of two sockets"
    assert local_cpus("ffff:ff:1f.7") == os.sched_getaffinity(0), "one that the kernel does not know is near to all"


@pytest.mark.parametrize(("role", "cpus"), [("runner", (2, 3)), ("launcher", (0, 1))])
def test_a_launch_gets_the_processors_of_its_role(role: str, cpus: tuple[int, ...], tmp_path: Path) -> None:
    launches: list[Launch] = []

    class Provider:
        name = "bwrap"

        def launch(self, launch: Launch) -> None:
            launches.append(launch)

    confined = OnProcessors(Provider(), {"runner": (2, 3), "launcher": (0, 1)})  # type: ignore[arg-type]
    limits = {"memory_bytes": 1, "processes": 1, "disk_bytes": 1}
    confined.launch(Launch(socket=tmp_path, device="cuda", role=role, **limits))  # type: ignore[arg-type]
    assert [launch.cpus for launch in launches] == [cpus]


def test_contexts_get_half_of_the_memory_if_the_device_has_any() -> None:
    assert [sandboxes_in(free) for free in (78 * GIB, 139 * GIB, GIB, 0)] == [46, 83, 2, math.inf]
    with WeightedSemaphore(math.inf).take(1000):
        pass


def test_room_on_a_gpu_is_never_exceeded_and_everyone_gets_some() -> None:
    room, lock, used, most = WeightedSemaphore(7), threading.Lock(), 0, 0

    def work(wanted: int) -> None:
        nonlocal used, most
        with room.take(wanted):
            with lock:
                used += min(wanted, 7)
                most = max(most, used)
            time.sleep(0.002)
            with lock:
                used -= min(wanted, 7)

    dice = random.Random(0)
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(work, [dice.choice((1, 2, 6, 9)) for _ in range(200)], timeout=60))
    assert (used, most) == (0, 7)


def test_a_large_request_is_not_overtaken_by_small_ones() -> None:
    room, order = WeightedSemaphore(4), list[str]()

    def work(name: str, wanted: int) -> None:
        with room.take(wanted):
            order.append(name)

    with ThreadPoolExecutor(3) as pool, room.take(3):
        for count, (name, wanted) in enumerate([("much", 4), ("little", 1)], 1):
            pool.submit(work, name, wanted)
            until(lambda count=count: len(room._waiting) == count)
        time.sleep(0.1)
        assert order == []
    assert order == ["much", "little"]
