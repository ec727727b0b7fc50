"""The devices that the judge can grade on. Each kind has a module with what is particular to it. Trusted.

A new kind is a module and a line here; `harness.arena` and `harness.runner` have modules of their own for it. Neither
torch nor a driver is asked for by importing this.
"""

from __future__ import annotations

from collections.abc import Mapping

from harness.device.cpu import Cpu
from harness.device.cuda import Cuda
from harness.device.interface import BatchSizes, Device, DeviceFacts, Sensors, Workload
from harness.kinds import DeviceKind

DEVICES: Mapping[DeviceKind, Device] = {"cpu": Cpu(), "cuda": Cuda()}

__all__ = ["DEVICES", "BatchSizes", "Device", "DeviceFacts", "Sensors", "Workload"]
