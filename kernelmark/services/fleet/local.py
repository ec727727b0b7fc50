"""The workers of this machine: one for each of its GPUs, or one for its CPU. Trusted; torch is not imported."""

from __future__ import annotations

import ctypes
import os
import uuid
from pathlib import Path

from kernelmark.services.choice import cuda_is_here
from kernelmark.services.fleet.process import WorkerProcess
from kernelmark.services.settings import DeviceChoice

_CPUS_A_SLOT, _MOST_SLOTS = 1, 16


def local_workers(root: Path, device: DeviceChoice, slots: int | None) -> list[WorkerProcess]:
    """Workers that are not started yet; `slots` is the number of jobs that each works on at a time."""
    cpus = len(os.sched_getaffinity(0))
    gpus = gpu_uuids() if device != "cpu" and cuda_is_here() else []
    if not gpus:
        # Only one submission at a time is timed on a CPU, and its tests would disturb another's times.
        return [WorkerProcess(root, slots or 1, {**os.environ, "CUDA_VISIBLE_DEVICES": ""})]
    each = slots or max(1, min(_MOST_SLOTS, cpus // (_CPUS_A_SLOT * len(gpus))))
    return [WorkerProcess(root, each, {**os.environ, "CUDA_VISIBLE_DEVICES": gpu}) for gpu in gpus]


def gpu_uuids() -> list[str]:
    """The GPUs that `CUDA_VISIBLE_DEVICES` leaves to this process, as that variable names them."""
    driver, count = ctypes.CDLL("libcuda.so.1"), ctypes.c_int()
    if driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count)):
        return []
    found = []
    for index in range(count.value):
        device, raw = ctypes.c_int(), (ctypes.c_ubyte * 16)()
        if not driver.cuDeviceGet(ctypes.byref(device), index) and not driver.cuDeviceGetUuid(raw, device):
            found.append(f"GPU-{uuid.UUID(bytes=bytes(raw))}")
    return found
