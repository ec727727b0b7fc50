"""Keeps a stream from starting until the host has enqueued what is to be timed, so that launch latency is not in it.

The stream waits on a word of pinned host memory, which the host writes when everything is enqueued: the wait ends a few
microseconds later, however long the enqueueing took. Where the driver refuses such waits, a kernel spins for a time
that was measured beforehand. A submission that waits for the device inside its call would wait for ever behind the
word, as would the launch of a graph that finds the driver's queue full; a timer then opens it, and says that it had to.
Untrusted: what is held is a claim's business, never the score's.
"""

from __future__ import annotations

import contextlib
import ctypes
import threading
from collections.abc import Iterator
from typing import Literal

import torch
from cuda.bindings import driver

from harness.arena.mapping import check
from harness.errors import DeviceError

PATIENCE_S = 0.1  # enqueueing a call takes microseconds, a call that compiles has been warmed up
_CYCLES_PER_NS = 2.0  # an upper guess of the SM clock: the spin may be too long, never too short
_LONGEST_SPIN_NS = 5_000_000


class Hold:
    """Holds one stream. `kind` says how; `broken` that a timer had to end it, since the call waited for the device."""

    def __init__(self, stream: int) -> None:
        self._stream = stream
        self._word = torch.zeros(1, dtype=torch.int32).pin_memory()
        self._host = ctypes.c_int32.from_address(self._word.data_ptr())
        self._device = check(driver.cuMemHostGetDevicePointer(self._word.data_ptr(), 0))
        self.kind: Literal["memory", "spin"] = "memory"
        self.broken = False
        try:
            self.close(0)
            self.open()
            torch.cuda.synchronize()
        except DeviceError:
            self.kind = "spin"

    def close(self, spin_ns: int) -> None:
        """From here on nothing on the stream starts until `open`, or for `spin_ns` where only a spin is to be had."""
        if self.kind == "spin":
            torch.cuda._sleep(int(min(spin_ns, _LONGEST_SPIN_NS) * _CYCLES_PER_NS))
            return
        self._host.value = 0
        geq = driver.CUstreamWaitValue_flags.CU_STREAM_WAIT_VALUE_GEQ
        check(driver.cuStreamWaitValue32(self._stream, self._device, 1, geq))

    def open(self) -> None:
        """Let the stream go; harmless when it is open."""
        self._host.value = 1

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """Around code that may wait for the device: after `PATIENCE_S` the stream is let go, the hold `broken`."""
        self.broken = False
        timer = threading.Timer(PATIENCE_S, self._give_up)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            self.open()

    def _give_up(self) -> None:
        self.broken = True
        self.open()
