"""A device's memory: who used it up, when it is released, what is new in it, and how the judge plans with it."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import get_args

import pytest
import torch

from harness.arena.deferred_free import DeferredFree, most_kept_bytes
from harness.device import DEVICES, BatchSizes
from harness.errors import DeviceError
from harness.judge import device_memory
from harness.judge.device_memory import DeviceMemory
from harness.judge.timing.plan import plan_for
from harness.kinds import DeviceKind
from harness.runner.blocks import Blocks

GIB = 1 << 30


class Device:
    """A GPU's memory, of which earlier gradings may keep some until it is given back; and a session that holds some."""

    def __init__(self) -> None:
        self.free, self.kept, self.held = 130 * GIB, 0, 0

    def give_back(self, _: str) -> None:
        self.free, self.kept = self.free + self.kept, 0

    def close(self) -> None:
        self.free += self.held


@pytest.fixture(autouse=True)
def device(monkeypatch: pytest.MonkeyPatch) -> Device:
    made = Device()
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (made.free, 140 * GIB))
    monkeypatch.setattr(device_memory, "give_back", made.give_back)
    monkeypatch.setattr(device_memory, "_SECONDS", 0.3)
    return made


@pytest.mark.parametrize(
    ("held", "others", "blamed"),
    [(100 * GIB, 0, True), (1 * GIB, 125 * GIB, False), (40 * GIB, 85 * GIB, False), (60 * GIB, 60 * GIB, True)],
)
def test_memory_freed_with_the_session_was_its_own(held: int, others: int, blamed: bool, device: Device) -> None:
    memory = DeviceMemory("cuda")
    device.free, device.held = device.free - held - others, held
    why = memory.held_too_much(device)  # type: ignore[arg-type]
    assert (why is not None) == blamed
    assert why is None or f"{held:,} bytes" in why


@pytest.mark.parametrize(("free", "short"), [(1 * GIB, True), (3 * GIB, False)])
def test_memory_can_be_short_whoever_holds_it(free: int, short: bool, device: Device) -> None:
    memory = DeviceMemory("cuda")
    device.free = free
    assert memory.is_short() == short


def test_what_earlier_gradings_kept_counts_as_free(device: Device) -> None:
    device.free, device.kept, device.held = 20 * GIB, 110 * GIB, 10 * GIB
    assert DeviceMemory("cuda").held_too_much(device) is None  # type: ignore[arg-type]


def test_a_cpu_has_no_device_memory(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "close", pytest.fail)
    assert DeviceMemory("cpu").held_too_much(device) is None  # type: ignore[arg-type]
    assert not DeviceMemory("cpu").is_short()


@pytest.mark.parametrize("whole", [16, 24, 80, 141])
def test_where_memory_is_short_no_more_is_kept_than_elsewhere(whole: int) -> None:
    ample, short = most_kept_bytes(whole * GIB // 2, whole * GIB), most_kept_bytes(whole * GIB // 4, whole * GIB)
    assert ample == 2 * GIB
    assert GIB // 2 <= short <= ample


MOST = 2 * GIB


class Clock:
    """A clock that sleeping alone moves."""

    def __init__(self) -> None:
        self.now, self.slept = 100.0, list[float]()

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


def noted(*spare: Callable[[], int]) -> tuple[DeferredFree, list[str], Clock]:
    """Memory of which is noted what was released, and how long that was waited for."""
    released, clock = list[str](), Clock()
    deferred = DeferredFree(released.append, clock.sleep, *spare or (lambda: 0,), now=lambda: clock.now)
    return deferred, released, clock


def test_little_memory_is_kept_and_more_is_released_together() -> None:
    deferred, released, clock = noted()
    for name in "ab":
        deferred.add(name, GIB, MOST)
    deferred.settle()
    assert (released, clock.slept, deferred.kept_bytes) == ([], [], 2 * GIB)
    deferred.add("c", 4 * GIB, MOST)
    assert (released, deferred.kept_bytes) == (["a", "b", "c"], 0)
    assert clock.slept == [], "memory that nothing is timed in need not be as good as new"
    deferred.settle()
    assert clock.slept == [pytest.approx(0.048)], "6 GiB take the driver 30 ms"
    deferred.settle()
    assert len(clock.slept) == 1, "nothing was released since then"


def test_what_is_kept_never_grows_with_the_number_of_arenas() -> None:
    deferred, _, _ = noted()
    most = 0
    for number in range(50):
        deferred.add(str(number), 700 << 20, MOST)
        most = max(most, deferred.kept_bytes)
    assert most <= MOST


def test_waiting_after_a_release_takes_elapsed_time_into_account() -> None:
    deferred, _, clock = noted()
    deferred.add("a", 10 * GIB, MOST)
    clock.now += 0.05
    deferred.settle()
    assert clock.slept == [pytest.approx(0.01)]
    deferred.add("b", 10 * GIB, MOST)
    deferred.add("c", 32 * GIB, MOST)
    deferred.settle()
    assert 0.1 <= clock.slept[-1] <= 0.16, "42 GiB took the driver between 60 and 100 ms"


def test_the_end_of_a_grading_gives_everything_back() -> None:
    deferred, released, clock = noted()
    deferred.add("a", 5, MOST)
    deferred.add("b", 7, MOST)
    assert deferred.free() == 12
    assert (released, clock.slept, deferred.kept_bytes) == (["a", "b"], [], 0)
    assert deferred.free() == 0


def test_memory_given_back_to_others_is_waited_for_before_timing() -> None:
    deferred, released, clock = noted(lambda: 2 * GIB)
    deferred.add("a", 4 * GIB, 30 * GIB)
    deferred.give_back()
    assert (released, deferred.kept_bytes, clock.slept) == (["a"], 0, [])
    deferred.settle()
    assert clock.slept == [pytest.approx(0.048)]


@pytest.mark.parametrize("hoard", ["retired", "spare"])
def test_a_device_that_is_full_of_kept_memory_still_has_some(hoard: str) -> None:
    full = {"retired": False, "spare": False, hoard: True}

    def create() -> str:
        if any(full.values()):
            raise DeviceError("CUDA driver: CUDA_ERROR_OUT_OF_MEMORY")
        return "new"

    def spare() -> int:
        full["spare"] = False
        return GIB

    deferred = DeferredFree(lambda _: full.update(retired=False), lambda _: None, spare)
    deferred.add("old", GIB, MOST)
    assert deferred.allocate(create) == "new"
    assert deferred.kept_bytes == 0
    full["others"] = True
    with pytest.raises(DeviceError, match="OUT_OF_MEMORY"):
        deferred.allocate(create)


BLOCKS = [(1000, 200, "active_allocated"), (1200, 300, "inactive"), (1500, 100, "active_pending_free")]


@pytest.fixture
def blocks(monkeypatch: pytest.MonkeyPatch) -> Blocks:
    described = [{"address": address, "size": size, "state": state} for address, size, state in BLOCKS]
    segments = [{"address": 1500, "blocks": described[2:]}, {"address": 1000, "blocks": described[:2]}]
    monkeypatch.setattr(torch.cuda, "memory_snapshot", lambda: segments)
    return Blocks()


@pytest.mark.parametrize(
    ("low", "high", "inside", "touched"),
    [
        (1000, 1200, True, True),
        (1100, 1104, True, True),
        (1199, 1201, False, True),
        (1200, 1500, False, False),
        (1400, 1501, False, True),
        (1500, 1600, True, True),
        (1600, 1700, False, False),
        (900, 1000, False, False),
        (900, 1700, False, True),
    ],
)
def test_a_range_of_addresses(blocks: Blocks, low: int, high: int, inside: bool, touched: bool) -> None:
    assert (blocks.contain(low, high), blocks.overlap(low, high)) == (inside, touched)


def test_free_memory_and_other_segments_are_not_in_use(blocks: Blocks, monkeypatch: pytest.MonkeyPatch) -> None:
    intermediate = {"address": 1200, "size": 100, "state": "active_allocated"}
    monkeypatch.setattr(torch.cuda, "memory_snapshot", lambda: [{"address": 1000, "blocks": [intermediate]}])
    before = Blocks()
    assert blocks.parts_in_use({1000: 500}, blocks) == {(1000, 200)}
    assert blocks.parts_in_use({1000: 500}, before) == {(1000, 200), (1200, 100)}, "a call may replace it"
    assert blocks.parts_in_use({1500: 100, 4000: 50}, before) == {(1500, 100), (4000, 50)}, "the latter from cudaMalloc"


def test_nothing_is_allocated_at_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "memory_snapshot", list)
    assert not Blocks().contain(0, 1)
    assert not Blocks().overlap(0, 1 << 60)


def test_every_kind_has_what_the_judge_asks_of_it() -> None:
    assert {*DEVICES} == {*get_args(DeviceKind)}
    assert {kind: device.kind for kind, device in DEVICES.items()} == {kind: kind for kind in DEVICES}


@pytest.mark.parametrize(("free", "batch", "buffer"), [(139 * GIB, 12 * GIB, 4 * GIB), (12 * GIB, 3 * GIB, 3 * GIB)])
def test_a_gpu_gives_shares_of_its_free_memory(
    free: int, batch: int, buffer: int, device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    device.free = free
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: SimpleNamespace(L2_cache_size=50 << 20))
    assert DEVICES["cuda"].batch_sizes() == BatchSizes(batch, 50 << 20)
    assert DEVICES["cuda"].workload().buffer_bytes == buffer


def test_a_cpu_has_rounds_of_64_mib_and_half_the_time() -> None:
    assert DEVICES["cpu"].batch_sizes() == BatchSizes(64 << 20, 0)
    assert plan_for("cuda").blocks_budget_ns == 2 * plan_for("cpu").blocks_budget_ns == 2_000_000_000
