"""Which of a machine's GPUs a sandbox gets: the one that the judge itself uses."""

from __future__ import annotations

import ctypes
from pathlib import Path
from types import SimpleNamespace

import pytest

from harness.errors import SandboxError, UsageError
from harness.sandbox import gpu
from kernelmark.project import choice

CARDS = {"0000:1b:00.0": 3, "0000:43:00.0": 1, "0000:52:00.0": 0}  # minor numbers need not follow PCI addresses


@pytest.fixture
def listing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for address, minor in CARDS.items():
        (tmp_path / address).mkdir()
        (tmp_path / address / "information").write_text(f"Model: \t A GPU\nDevice Minor: \t {minor}\n")
    monkeypatch.setattr(gpu, "_DRIVER_LISTING", tmp_path)
    return tmp_path


@pytest.mark.parametrize(("address", "index"), [("0000:1b:00.0", 0), ("0000:43:00.0", 1), ("0000:52:00.0", 2)])
def test_sandboxes_get_the_judges_gpu(listing: Path, monkeypatch: pytest.MonkeyPatch, address: str, index: int) -> None:
    monkeypatch.setattr(gpu, "address_in_use", lambda: address)
    assert gpu.index_in_use() == index
    assert gpu._minor(index) == CARDS[address]


def test_the_only_gpu_is_used_and_among_several_none_is_guessed(listing: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "address_in_use", lambda: "0000:ff:00.0")
    with pytest.raises(SandboxError, match="which of this machine's GPUs"):
        gpu.index_in_use()
    for address in list(CARDS)[1:]:
        (listing / address / "information").unlink()
    monkeypatch.setattr(gpu, "address_in_use", lambda: "")
    assert gpu.index_in_use() == 0


def test_without_a_driver_there_is_no_address() -> None:
    if Path("/proc/driver/nvidia").exists():
        pytest.skip("there is a driver here")
    assert gpu.address_in_use() == ""


@pytest.mark.parametrize("status", [100, 999])
def test_a_driver_without_devices_is_no_error(status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda _: SimpleNamespace(cuInit=lambda _: status))
    assert choice.visible_gpus() == []


def test_after_a_fork_the_cpu_is_not_taken_instead(monkeypatch: pytest.MonkeyPatch) -> None:
    """The driver does not work in a process that was forked from one that has used it."""
    monkeypatch.setattr(ctypes, "CDLL", lambda _: SimpleNamespace(cuInit=lambda _: 3))
    with pytest.raises(UsageError, match="forked from one that has used it; use `spawn`"):
        choice.visible_gpus()
