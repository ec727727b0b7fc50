"""Describes how the sandbox of a session is launched. Trusted."""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path
from typing import Literal

from harness.device import JudgeDevice
from harness.problem import Limits
from harness.sandbox import Launch, Role, Watcher

Mode = Literal["ahead", "builds", "one_queue", "records", "triton"]
"""What the program will do, which its environment says.

- ahead: it may wait long for its job, and takes no device memory before the handshake.
- builds: a runner will only build. It gets no GPU, but the properties of the GPU to build for.
- one_queue: no call will be timed whose parts run side by side. They take another time with one hardware queue.
- records: a runner will record its calls.
- triton: the submission seems to use Triton, which the runner prepares as it starts.
"""
# One allocation per tensor, so that a watcher sees where each tensor ends.
_WATCHED = {"KERNELMARK_WATCHED": "1", "PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}


def launch_of(
    socket: Path, device: JudgeDevice, limits: Limits, role: Role, watcher: Watcher | None, modes: Collection[Mode]
) -> Launch:
    """The launch of a program that connects to this socket."""
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
            **(device.one_queue if "one_queue" in modes else {}),
            **(_WATCHED if watcher else {}),
            **{f"KERNELMARK_{mode.upper()}": "1" for mode in modes},
            **({"KERNELMARK_BUILDS": json.dumps(device.properties())} if "builds" in modes else {}),
        },
        watcher=watcher,
        role=role,
    )
