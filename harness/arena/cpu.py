"""The CPU's memory: sealed memfds. torch is imported where memory is made."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.arena.memfd import MemfdArena, MemfdWindow


class CpuMemory:
    """Memory that every process has; all of it is the host's."""

    def warm(self) -> None:
        pass

    def arena(self, nbytes: int, *, read_only: bool, in_host: bool) -> MemfdArena:
        from harness.arena.memfd import MemfdArena

        return MemfdArena(nbytes, read_only=read_only)

    def window(self, nbytes: int, *, writable: bool, at: int, in_host: bool) -> MemfdWindow:
        from harness.arena.memfd import MemfdWindow

        return MemfdWindow(nbytes, writable=writable)

    def free_deferred(self) -> None:
        pass

    def give_back(self) -> None:
        pass
