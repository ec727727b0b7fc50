"""Room for sandboxes on a GPU: never more than there is, and in order."""

from __future__ import annotations

import math
import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from kernelmark.grading.fleet.shares import Room, sandboxes_in

GIB = 1 << 30


@pytest.mark.parametrize(("free", "sandboxes"), [(78 * GIB, 46), (139 * GIB, 83), (24 * GIB, 14), (GIB, 2)])
def test_contexts_get_half_of_the_memory(free: int, sandboxes: int) -> None:
    assert sandboxes_in(free) == sandboxes


def test_a_device_without_memory_has_no_bound() -> None:
    assert sandboxes_in(0) == math.inf
    with Room(math.inf).take(1000):
        pass


def test_no_more_than_there_is_and_all_get_theirs() -> None:
    room, lock, used, most = Room(7), threading.Lock(), 0, 0

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


def test_one_that_wants_much_is_not_overtaken() -> None:
    room, order = Room(4), list[str]()

    def work(name: str, wanted: int) -> None:
        with room.take(wanted):
            order.append(name)

    with ThreadPoolExecutor(3) as pool, room.take(3):
        pool.submit(work, "much", 4)
        time.sleep(0.1)
        pool.submit(work, "little", 1)
        time.sleep(0.1)
        assert order == []
    assert order == ["much", "little"]
