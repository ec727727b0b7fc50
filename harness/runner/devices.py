"""The devices, by kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.runner.device import Device

if TYPE_CHECKING:
    from harness.runner.images import LoadedImages


def open_device(kind: str, images: LoadedImages | None = None) -> Device:
    """Make the device's context; on CUDA this takes about 0.3 s. With `images` its calls can be recorded."""
    if kind == "cpu":
        from harness.runner.cpu import Cpu

        return Cpu()
    from harness.runner.cuda import Cuda

    return Cuda(images)
