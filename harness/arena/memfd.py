"""CPU arenas: memfds of a sealed size; no other process can map those of inputs writable.

`F_SEAL_FUTURE_WRITE` (Linux 5.1, fcntl(2)) lets the judge write through the mapping that it made before the seal, but
refuses every later writable mapping, `write(2)` and `mprotect(2)`. So a store to an input faults in the runner. Used by
the judge (trusted) and the runner (not trusted).
"""

from __future__ import annotations

import ctypes
import fcntl
import mmap
import os

import torch

from harness.arena.shapes import spanned, viewed

_F_SEAL_FUTURE_WRITE = 0x0010  # not in the fcntl module of Python 3.11
_MAP_NORESERVE = 0x4000
_MAP_FIXED = 0x10
_MAP_POPULATE = 0x8000
_PROT_NONE = 0
_RESERVED = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_NORESERVE
_PAGE = mmap.PAGESIZE

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
_libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]


def _page_aligned(nbytes: int) -> int:
    return max(1, -(-nbytes // _PAGE)) * _PAGE


def _mmap(address: int | None, nbytes: int, protection: int, flags: int, descriptor: int) -> int:
    mapped = _libc.mmap(address, nbytes, protection, flags, descriptor, 0)
    if mapped in (None, ctypes.c_void_p(-1).value):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return int(mapped)


class MemfdArena:
    """A sealed memfd, which is mapped read-write in this process."""

    def __init__(self, nbytes: int, *, read_only: bool) -> None:
        self.nbytes = _page_aligned(nbytes)
        self._descriptor = os.memfd_create("arena", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(self._descriptor, self.nbytes)
        self._map = mmap.mmap(self._descriptor, self.nbytes)
        self.bytes = torch.frombuffer(self._map, dtype=torch.uint8)
        seals = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | (_F_SEAL_FUTURE_WRITE if read_only else 0)
        fcntl.fcntl(self._descriptor, fcntl.F_ADD_SEALS, seals | fcntl.F_SEAL_SEAL)

    def descriptor(self) -> int:
        return self._descriptor

    def close(self) -> None:
        # The mapping is removed with the last tensor that views it, so this object must not keep one.
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
            del self.bytes, self._map


class MemfdWindow:
    """A reserved range of addresses, at which `map` puts a memfd with MAP_FIXED."""

    def __init__(self, nbytes: int, *, writable: bool) -> None:
        self.nbytes = _page_aligned(nbytes)
        self._protection = mmap.PROT_READ | (mmap.PROT_WRITE if writable else 0)
        self.address = _mmap(None, self.nbytes, _PROT_NONE, _RESERVED, -1)

    def map(self, descriptor: int) -> None:
        # Outputs are mapped before the clock starts, so their pages are populated. Inputs get their pages when they are
        # first touched, which is part of the calls' time.
        populate = _MAP_POPULATE if self._protection & mmap.PROT_WRITE else 0
        _mmap(self.address, self.nbytes, self._protection, mmap.MAP_SHARED | _MAP_FIXED | populate, descriptor)

    def unmap(self) -> None:
        _mmap(self.address, self.nbytes, _PROT_NONE, _RESERVED | _MAP_FIXED, -1)

    def tensor(self, offset: int, shape: tuple[int, ...], dtype: str, strides: tuple[int, ...] = ()) -> torch.Tensor:
        kind = getattr(torch, dtype)
        count = max(1, spanned(shape, strides))  # torch refuses an empty buffer
        nbytes = count * torch.empty(0, dtype=kind).element_size()
        buffer = (ctypes.c_char * nbytes).from_address(self.address + offset)
        return viewed(torch.frombuffer(buffer, dtype=kind, count=count), shape, strides)

    def close(self) -> None:
        if self.address:
            _libc.munmap(self.address, self.nbytes)
            self.address = 0
