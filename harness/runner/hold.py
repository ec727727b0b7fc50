"""Keeps a stream from starting until the host has enqueued what is timed, so that the time has no launch latency.

The stream waits for a word of pinned host memory, which the host writes when everything is enqueued: the wait ends a
few microseconds later, however long enqueueing took. If the driver refuses such waits, a kernel spins for a time that
was measured beforehand. Behind a hold, a call that waits for the device would never return, so it is first tried behind
a kernel that ends by itself. A graph launch that finds the driver's queue full would not return either: a timer then
releases the hold, and records that it had to. Untrusted: a hold affects claims only, which the judge's clock checks.
"""

from __future__ import annotations

import contextlib
import ctypes
import threading
from collections.abc import Callable, Iterator
from typing import Literal

import torch
from cuda.bindings import driver

from harness.arena.mapping import check
from harness.errors import DeviceError

PATIENCE_S = 0.1  # enqueueing a call takes microseconds; compilation happens during warm-up
_CYCLES_PER_NS = 2.0  # above the SM clock of an H100 and an H200, so that a spin is never too short there
_LONGEST_SPIN_NS = 5_000_000
_SHORTEST_TRIAL_NS = 20_000_000  # longer than other processes usually keep the host from running


class Hold:
    """Holds one stream. `kind` says how; `broken`: a timer had to release it, since a launch or call did not return."""

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

    def would_block(self, call: Callable[[], None], enqueue_ns: int) -> bool:
        """Whether a call that takes the host up to `enqueue_ns` waits for the stream. The device is idle afterwards.

        The timer alone would not do: a C++ extension may keep the GIL while it waits, and the timer cannot run then.
        """
        spun = check(driver.cuEventCreate(driver.CUevent_flags.CU_EVENT_DISABLE_TIMING))
        _spin(min(max(enqueue_ns, _SHORTEST_TRIAL_NS), int(PATIENCE_S * 1e9)))
        check(driver.cuEventRecord(spun, self._stream))
        call()
        (status,) = driver.cuEventQuery(spun)
        torch.cuda.synchronize()
        check(driver.cuEventDestroy(spun))
        return bool(status == driver.CUresult.CUDA_SUCCESS)

    def close(self, spin_ns: int) -> None:
        """From here on nothing on the stream starts until `open`, or for `spin_ns` if only a spin is possible."""
        if self.kind == "spin":
            _spin(min(spin_ns, _LONGEST_SPIN_NS))
            return
        self._host.value = 0
        geq = driver.CUstreamWaitValue_flags.CU_STREAM_WAIT_VALUE_GEQ
        check(driver.cuStreamWaitValue32(self._stream, self._device, 1, geq))

    def open(self) -> None:
        """Release the stream; harmless if it is not held."""
        self._host.value = 1

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """Around code that may wait for the device: after `PATIENCE_S` the stream is released and the hold `broken`."""
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


def _spin(ns: int) -> None:
    """Keep the current stream busy for at least that long."""
    torch.cuda._sleep(int(ns * _CYCLES_PER_NS))
