"""What NVML's sensors report about a device."""

from __future__ import annotations

from harness.device import DEVICES, nvml
from harness.verdict import Telemetry


class Nvml:
    """A driver that knows its clocks and its throttling, and has no temperature sensor."""

    NVML_CLOCK_SM, NVML_CLOCK_MEM, NVML_TEMPERATURE_GPU = 1, 2, 0

    class NVMLError(Exception):
        pass

    def nvmlDeviceGetClockInfo(self, device: str, clock: int) -> int:  # noqa: N802 - NVML's name
        return {1: 1755, 2: 3201}[clock]

    def nvmlDeviceGetPowerUsage(self, device: str) -> int:  # noqa: N802
        return 699_000

    def nvmlDeviceGetTemperature(self, device: str, sensor: int) -> int:  # noqa: N802
        raise self.NVMLError

    def nvmlDeviceGetCurrentClocksEventReasons(self, device: str) -> int:  # noqa: N802
        return 0x01 | 0x04 | 0x40


def test_missing_sensors_are_left_out() -> None:
    assert DEVICES["cpu"].sensors().read() is None
    read = nvml.NvmlSensors(Nvml(), "device").read()
    assert read == Telemetry(
        sm_mhz=1755, memory_mhz=3201, power_mw=699_000, throttle=("sw_power_cap", "hw_thermal_slowdown")
    )
    assert set(read.throttle) <= set(nvml._THROTTLE.values()), "an idle device is not throttled"
