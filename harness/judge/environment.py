"""What the judge records of the machine: the device, its driver and limits, and the runner's own versions. Trusted.

The versions come from the runner's first two frames, sent before the submission was in its sandbox. torch is imported
by the functions that ask it, since `kernelmark doctor` calls `cpu_name` where torch may be broken.
"""

from __future__ import annotations

import hashlib
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.verdict import DeviceKind, Environment

if TYPE_CHECKING:
    from harness.judge.session import Session
    from harness.sandbox import Provider


def environment(session: Session, provider: Provider, device: DeviceKind, *, interpreted: bool) -> Environment:
    """Describe where a grading ran."""
    facts = device_facts(device)
    return Environment.model_validate(
        {
            **facts,
            "device_kind": device,
            "sandbox": provider.name,
            "image_digest": provider.image_digest(),
            "interpreted": interpreted,
            "python": session.hello.python,
            "torch": session.ready.torch,
            "triton": session.ready.triton or None,
        }
    )


def device_facts(device: DeviceKind) -> dict[str, Any]:
    """Name and, of a GPU, the UUID's hash, driver, CUDA and power limit, as far as the driver tells them."""
    return _gpu() if device == "cuda" else {"device_name": cpu_name()}


def architecture(device: DeviceKind) -> str:
    """The compiler's name of the device's architecture; without a GPU, that of the boards that we publish."""
    if device == "cpu":
        return "sm_90"
    import torch

    major, minor = torch.cuda.get_device_capability()
    return f"sm_{major}{minor}"


def cpu_name() -> str:
    """The processor's name as the kernel tells it."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return "unknown CPU"


def _gpu() -> dict[str, Any]:
    import torch

    properties = torch.cuda.get_device_properties(torch.cuda.current_device())
    facts: dict[str, Any] = {
        "device_name": properties.name,
        "device_uuid_sha256": hashlib.sha256(str(properties.uuid).encode()).hexdigest(),
        "cuda": torch.version.cuda,
    }
    try:
        metadata.version("nvidia-ml-py")
    except metadata.PackageNotFoundError:
        return facts
    import pynvml

    pynvml.nvmlInit()
    try:
        handle = pynvml.nvmlDeviceGetHandleByUUID(f"GPU-{properties.uuid}")
        facts["driver"] = str(pynvml.nvmlSystemGetDriverVersion())
        facts["power_limit_mw"] = int(pynvml.nvmlDeviceGetEnforcedPowerLimit(handle))
    except pynvml.NVMLError:
        pass  # a virtual GPU may tell less; what is absent is absent
    finally:
        pynvml.nvmlShutdown()
    return facts
