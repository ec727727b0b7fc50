"""Reads a GPU's sensors right after a round: clocks, power, temperature, and reasons for lowered clocks. Trusted.

The judge itself calls NVML, so a submission cannot influence the readings. They are recorded with each round. They
explain times, but do not change any.
"""

from __future__ import annotations

import contextlib
from importlib import metadata
from typing import Any

from harness.device.interface import NoSensors, Sensors
from harness.verdict import Telemetry

# NVML's names of reasons, without their prefix. Idling, and clocks set by an administrator, are not throttling.
_THROTTLE = {
    0x04: "sw_power_cap",
    0x08: "hw_slowdown",
    0x10: "sync_boost",
    0x20: "sw_thermal_slowdown",
    0x40: "hw_thermal_slowdown",
    0x80: "hw_power_brake",
}


class NvmlSensors:
    """The sensors of one GPU."""

    def __init__(self, nvml: Any, device: Any) -> None:
        self._nvml, self._device = nvml, device

    def read(self) -> Telemetry | None:
        """Read the sensors. This takes microseconds; up to a millisecond if the driver queries the device."""
        nvml = self._nvml
        reasons = self._query("nvmlDeviceGetCurrentClocksEventReasons") or 0
        return Telemetry(
            sm_mhz=self._query("nvmlDeviceGetClockInfo", nvml.NVML_CLOCK_SM),
            memory_mhz=self._query("nvmlDeviceGetClockInfo", nvml.NVML_CLOCK_MEM),
            power_mw=self._query("nvmlDeviceGetPowerUsage"),
            temperature_c=self._query("nvmlDeviceGetTemperature", nvml.NVML_TEMPERATURE_GPU),
            throttle=tuple(name for bit, name in _THROTTLE.items() if reasons & bit),
        )

    def _query(self, function: str, *arguments: int) -> int | None:
        try:
            return int(getattr(self._nvml, function)(self._device, *arguments))
        except (AttributeError, self._nvml.NVMLError):  # an older library, or a sensor that this device lacks
            return None


def open_nvml() -> tuple[Any, Any] | None:
    """The NVML library and its handle of the judge's device; None if either is missing."""
    import torch

    with contextlib.suppress(metadata.PackageNotFoundError):
        metadata.version("nvidia-ml-py")
        import pynvml

        with contextlib.suppress(pynvml.NVMLError):  # a virtual GPU may not support NVML
            pynvml.nvmlInit()
            uuid = torch.cuda.get_device_properties(torch.cuda.current_device()).uuid
            return pynvml, pynvml.nvmlDeviceGetHandleByUUID(f"GPU-{uuid}")
    return None


def sensors() -> Sensors:
    """The sensors of the judge's device; without NVML, sensors that report nothing."""
    return NvmlSensors(*handles) if (handles := open_nvml()) else NoSensors()
