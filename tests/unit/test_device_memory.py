"""Who is told to have used up a GPU's memory: only the sandbox whose end brings it back."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from harness.judge import device_memory
from harness.judge.device_memory import DeviceMemory
from harness.judge.session import Session

GIB = 1 << 30


@pytest.fixture(autouse=True)
def given_back(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The devices to which unused memory was given back: without a GPU there is none."""
    devices: list[str] = []
    monkeypatch.setattr(device_memory, "give_back", devices.append)
    return devices


class Closing:
    """A session whose end frees memory."""

    def __init__(self, close: Callable[[], None]) -> None:
        self.close = close


@pytest.mark.parametrize(
    ("held", "others", "blamed"),
    [(100 * GIB, 0, True), (1 * GIB, 125 * GIB, False), (40 * GIB, 85 * GIB, False), (60 * GIB, 60 * GIB, True)],
)
def test_what_comes_back_was_the_submissions(
    held: int, others: int, blamed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = [130 * GIB]
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (free[0], 140 * GIB))
    monkeypatch.setattr(device_memory, "_SECONDS", 0.3)
    memory = DeviceMemory("cuda")
    free[0] -= held + others

    def close() -> None:
        free[0] += held

    why = memory.held_too_much(Closing(close))  # type: ignore[arg-type]
    assert (why is not None) == blamed
    assert why is None or f"{held:,} bytes" in why


@pytest.mark.parametrize(("free", "short"), [(1 * GIB, True), (0, True), (3 * GIB, False), (100 * GIB, False)])
def test_memory_is_short_whoever_has_it(free: int, short: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [130 * GIB]
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (now[0], 140 * GIB))
    memory = DeviceMemory("cuda")
    now[0] = free
    assert memory.is_short() == short


def test_what_earlier_gradings_kept_counts_as_free(given_back: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    free = [20 * GIB]
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (free[0] + 110 * GIB * len(given_back), 140 * GIB))
    monkeypatch.setattr(device_memory, "_SECONDS", 0.3)
    memory = DeviceMemory("cuda")

    def close() -> None:
        free[0] += 10 * GIB

    assert memory.held_too_much(Closing(close)) is None  # type: ignore[arg-type]


def test_a_cpu_has_no_device_memory() -> None:
    def never() -> None:
        raise AssertionError("closed")

    session: Session = Closing(never)  # type: ignore[assignment]
    assert DeviceMemory("cpu").held_too_much(session) is None
    assert not DeviceMemory("cpu").is_short()
