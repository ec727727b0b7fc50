"""Describes how the sandbox of a session is launched. Trusted."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from harness.device import JudgeDevice
from harness.problem import Limits
from harness.sandbox import Launch, Role, Watcher

# One allocation per tensor, so that a watcher sees where each tensor ends.
_WATCHED = {"KERNELMARK_WATCHED": "1", "PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}


def launch_of(
    socket: Path, device: JudgeDevice, limits: Limits, role: Role, watcher: Watcher | None, modes: Mapping[str, bool]
) -> Launch:
    """The launch of a program that connects to this socket.

    Args:
        modes: what the runner will do, by the name of its environment variable without `KERNELMARK_`. A runner that
            only BUILDS gets no GPU, but the properties of the GPU to build for.
    """
    return Launch(
        socket=socket,
        device="cpu" if modes["BUILDS"] else device.kind,
        gpu_index=device.index(),
        memory_bytes=limits.memory_bytes,
        processes=limits.processes,
        disk_bytes=limits.disk_bytes,
        environment={
            "KERNELMARK_DEVICE": device.kind,
            # NumPy's BLAS starts a thread per core on import, and crashes with SIGSEGV if that is refused.
            "OPENBLAS_NUM_THREADS": str(max(1, limits.processes // 4)),
            **device.runner_environment,
            **(_WATCHED if watcher else {}),
            **{f"KERNELMARK_{name}": "1" for name, wanted in modes.items() if wanted},
            **({"KERNELMARK_BUILDS": json.dumps(device.properties())} if modes["BUILDS"] else {}),
        },
        watcher=watcher,
        role=role,
    )
