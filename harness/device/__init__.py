"""The devices that the judge can grade on. Each kind has a module with what is particular to it. Trusted.

A new kind is a module and a line here; `harness.arena` and `harness.runner` have modules of their own for it.
Importing this needs neither torch nor a driver.
"""

from __future__ import annotations

from collections.abc import Mapping

from harness.device.cpu import CpuDevice
from harness.device.cuda import CudaDevice
from harness.device.interface import BatchSizes, DeviceFacts, JudgeDevice, Sensors, Workload
from harness.kinds import DeviceKind

DEVICES: Mapping[DeviceKind, JudgeDevice] = {"cpu": CpuDevice(), "cuda": CudaDevice()}
