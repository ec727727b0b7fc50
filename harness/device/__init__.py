"""The devices on which the judge can grade, with a module for each kind. Trusted.

A new kind needs a module and a line here, and modules in `harness.arena` and `harness.runner`. Importing this needs
neither torch nor a driver.
"""

from __future__ import annotations

from collections.abc import Mapping

from harness.device.cpu import CpuDevice
from harness.device.cuda import CudaDevice
from harness.device.interface import BatchSizes, DeviceFacts, JudgeDevice, Sensors, Workload
from harness.kinds import DeviceKind

DEVICES: Mapping[DeviceKind, JudgeDevice] = {"cpu": CpuDevice(), "cuda": CudaDevice()}
