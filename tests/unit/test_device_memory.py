"""Who is told to have used up a GPU's memory: only the sandbox whose end brings it back."""

from __future__ import annotations

import pytest
import torch

from harness.judge import device_memory
from harness.judge.device_memory import DeviceMemory

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
def test_what_comes_back_was_the_submissions(held: int, others: int, blamed: bool, device: Device) -> None:
    memory = DeviceMemory("cuda")
    device.free, device.held = device.free - held - others, held
    why = memory.held_too_much(device)  # type: ignore[arg-type]
    assert (why is not None) == blamed
    assert why is None or f"{held:,} bytes" in why


@pytest.mark.parametrize(("free", "short"), [(1 * GIB, True), (3 * GIB, False)])
def test_memory_is_short_whoever_has_it(free: int, short: bool, device: Device) -> None:
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
