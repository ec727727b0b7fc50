"""Memory that is handed over as a file descriptor: one protocol for CPU and CUDA, used on both sides of the trust line.

An `Arena` is one physical allocation in the judge. A `Window` is a range of addresses reserved in the runner, into
which one arena after another is mapped, so that calls prepared for its addresses get new memory unawares.
Input arenas can only be mapped read-only; the MMU enforces it.

Each kind of device has its own `Memory`: a new one is a module and a line here. No pydantic: the runner's sandbox holds
this package. torch is imported by `memfd` and `vmm` only.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from harness.arena.cpu import CpuMemory
from harness.arena.cuda import CudaMemory
from harness.errors import DeviceError

if TYPE_CHECKING:
    import torch


class Arena(Protocol):
    """The judge's side: memory it has filled, or will read."""

    nbytes: int
    bytes: torch.Tensor  # [nbytes] uint8 on the device

    def descriptor(self) -> int:
        """A file descriptor for the allocation; the arena owns it and closes it."""
        ...

    def close(self) -> None: ...


class Window(Protocol):
    """The runner's side: reserved addresses, with an arena behind them between `map` and `unmap`."""

    address: int

    def map(self, descriptor: int) -> None: ...
    def unmap(self) -> None: ...
    def tensor(
        self, offset: int, shape: tuple[int, ...], dtype: str, strides: tuple[int, ...] = ()
    ) -> torch.Tensor: ...
    def close(self) -> None: ...


class Memory(Protocol):
    """How one kind of device makes both; the functions below say what is asked of it. `warm` imports no torch."""

    def warm(self) -> None: ...
    def arena(self, nbytes: int, *, read_only: bool, in_host: bool) -> Arena: ...
    def window(self, nbytes: int, *, writable: bool, at: int, in_host: bool) -> Window: ...
    def free_deferred(self) -> None: ...
    def give_back(self) -> None: ...


_MEMORIES: Mapping[str, Memory] = {"cpu": CpuMemory(), "cuda": CudaMemory()}


def warm_context(device: str) -> None:
    """Begin to make the device's context, which torch will find made, while torch is still being imported."""
    _MEMORIES[device].warm()


def make_arena(device: str, nbytes: int, *, read_only: bool, in_host: bool = False) -> Arena:
    """Allocate an arena of `nbytes` on the device; `read_only` says what the runner may do with it.

    `in_host`: in the host's memory, at addresses that the device can read.

    Raises:
        DeviceError: out of memory, or the device cannot read the host's.
    """
    try:
        return _MEMORIES[device].arena(nbytes, read_only=read_only, in_host=in_host)
    except (OSError, DeviceError) as error:
        if isinstance(error, DeviceError) and error.remedy:
            raise
        raise DeviceError(
            f"no arena of {nbytes:,} bytes ({error})", "free some memory, or use a larger device"
        ) from error


def free_deferred(device: str) -> None:
    """Give the memory of closed arenas back to the device: it is kept while a grading runs (docs/decisions/0006)."""
    _MEMORIES[device].free_deferred()


def give_back(device: str) -> None:
    """If little of the device's memory is free, release what this process keeps for reuse: another may need it.

    Then it waits until the memory is as good as new (docs/decisions/0006).
    """
    _MEMORIES[device].give_back()


def make_window(device: str, nbytes: int, *, writable: bool, at: int = 0, in_host: bool = False) -> Window:
    """Reserve `nbytes` of addresses on the device, into which arenas of that size will be mapped.

    `at`: on a GPU the start address, or 0 for any. `in_host`: as of the arenas.
    """
    return _MEMORIES[device].window(nbytes, writable=writable, at=at, in_host=in_host)
