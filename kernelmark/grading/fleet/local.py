"""The workers of this machine: one for each of its GPUs, or one for its CPU. Trusted; torch is not imported."""

from __future__ import annotations

import ctypes
import os
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from kernelmark.grading.fleet.process import WorkerProcess
from kernelmark.grading.fleet.shares import divided, near
from kernelmark.project.choice import cuda_is_here
from kernelmark.project.settings import DeviceChoice

_MOST_SLOTS = 16  # each has a context on the GPU, of half a gigabyte, and its tensors


class Gpu(NamedTuple):
    """A GPU that this process may use."""

    uuid: str
    """Its name in `CUDA_VISIBLE_DEVICES`."""
    pci_address: str


def local_workers(
    root: Path, device: DeviceChoice, slots: int | None, environment: Mapping[str, str] = os.environ
) -> list[WorkerProcess]:
    """Workers that are not started yet; `slots` is the number of jobs that each works on at a time."""
    gpus = visible_gpus() if device != "cpu" and cuda_is_here() else []
    if not gpus:
        # Only one submission at a time is timed on a CPU, and other tests would disturb its times.
        return [WorkerProcess(root, slots or 1, {**environment, "CUDA_VISIBLE_DEVICES": ""})]
    parts = divided([near(gpu.pci_address) for gpu in gpus])
    return [
        WorkerProcess(
            root,
            slots or max(1, min(_MOST_SLOTS, len(cpus))),
            {**environment, "CUDA_VISIBLE_DEVICES": gpu.uuid},
            cpus,
        )
        for gpu, cpus in zip(gpus, parts, strict=True)
    ]


def visible_gpus() -> list[Gpu]:
    """The GPUs that `CUDA_VISIBLE_DEVICES` leaves to this process."""
    driver, count = ctypes.CDLL("libcuda.so.1"), ctypes.c_int()
    if driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count)):
        return []
    gpus = []
    for index in range(count.value):
        device, raw, address = ctypes.c_int(), (ctypes.c_ubyte * 16)(), ctypes.create_string_buffer(32)
        failed = driver.cuDeviceGet(ctypes.byref(device), index) or driver.cuDeviceGetUuid(raw, device)
        if not failed and not driver.cuDeviceGetPCIBusId(address, len(address), device):
            gpus.append(Gpu(f"GPU-{uuid.UUID(bytes=bytes(raw))}", address.value.decode().lower()))
    return gpus
