"""Describes how the sandbox of a session is launched. Trusted."""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path
from typing import Literal

from harness.device import ONE_QUEUE, JudgeDevice
from harness.problem import Limits
from harness.sandbox import Launch, Role, Watcher

Mode = Literal["ahead", "branches", "builds", "records", "triton"]
"""What the program will do, which it learns from its environment.

- ahead: it may wait long for its job, and takes no device memory before the handshake.
- branches: a launcher will replay calls whose parts run side by side.
- builds: a runner will only build. It gets no GPU, but the properties of the GPU to build for.
- records: a runner will record its calls, not time them.
- triton: the submission seems to use Triton, which the runner prepares as it starts.
"""
# One allocation per tensor, so that a watcher sees where each tensor ends.
_WATCHED = {"KERNELMARK_WATCHED": "1", "PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}


def launch_of(
    socket: Path, device: JudgeDevice, limits: Limits, role: Role, watcher: Watcher | None, modes: Collection[Mode]
) -> Launch:
    """The launch of a program that connects to this socket."""
    one_queue = "branches" not in modes if role == "launcher" else "records" in modes
    return Launch(
        socket=socket,
        device="cpu" if "builds" in modes else device.kind,
        gpu_index=device.index(),
        memory_bytes=limits.memory_bytes,
        processes=limits.processes,
        disk_bytes=limits.disk_bytes,
        environment={
            "KERNELMARK_DEVICE": device.kind,
            # NumPy's BLAS starts a thread per core on import, and crashes with SIGSEGV if that is refused.
            "OPENBLAS_NUM_THREADS": str(max(1, limits.processes // 4)),
            **device.runner_environment,
            **(ONE_QUEUE if one_queue else {}),
            **(_WATCHED if watcher else {}),
            **{f"KERNELMARK_{mode.upper()}": "1" for mode in modes},
            **({"KERNELMARK_BUILDS": json.dumps(device.properties())} if "builds" in modes else {}),
        },
        watcher=watcher,
        role=role,
    )
