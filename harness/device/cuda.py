"""The judge's CUDA device: the first one that `CUDA_VISIBLE_DEVICES` leaves visible. Trusted."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from harness.device import nvml
from harness.device.interface import BatchSizes, DeviceFacts, Sensors, Workload
from harness.kinds import DeviceKind
from harness.sandbox import gpu

if TYPE_CHECKING:
    import torch


class CudaDevice:
    """CUDA's device 0. The constructor does not call the driver."""

    kind: DeviceKind = "cuda"
    torch_device = "cuda"
    name = "GPU"
    on_host = False
    captures = True
    chunk_bytes = 1 << 29
    runner_environment: Mapping[str, str] = {}
    one_queue: Mapping[str, str] = {"CUDA_DEVICE_MAX_CONNECTIONS": "1"}

    def index(self) -> int:
        return gpu.index_in_use()

    def lock_name(self) -> str:
        return f"gpu-{gpu.address_in_use() or 'unknown'}"

    def facts(self) -> DeviceFacts:
        import torch

        properties = torch.cuda.get_device_properties(torch.cuda.current_device())
        facts = DeviceFacts(
            device_name=properties.name,
            device_uuid_sha256=hashlib.sha256(str(properties.uuid).encode()).hexdigest(),
            cuda=torch.version.cuda,
        )
        if handles := nvml.open_nvml():
            library, device = handles
            with contextlib.suppress(library.NVMLError):  # a virtual GPU may report less
                facts = facts._replace(driver=str(library.nvmlSystemGetDriverVersion()))
                facts = facts._replace(power_limit_mw=int(library.nvmlDeviceGetEnforcedPowerLimit(device)))
            library.nvmlShutdown()
        return facts

    def architecture(self) -> str:
        import torch

        major, minor = torch.cuda.get_device_capability()
        # From Hopper on, some instructions (wgmma) exist only for exactly one architecture, which nvcc calls sm_90a.
        return f"sm_{major}{minor}{'a' if major >= 9 else ''}"

    def properties(self) -> dict[str, int | float | str]:
        import torch

        properties = torch.cuda.get_device_properties(torch.cuda.current_device())
        values = {name: getattr(properties, name) for name in dir(properties) if not name.startswith("_")}
        return {name: value for name, value in values.items() if isinstance(value, int | float | str)}

    def free_bytes(self) -> int:
        import torch

        return int(torch.cuda.mem_get_info()[0])

    def memory_bytes(self) -> int:
        import torch

        return int(torch.cuda.mem_get_info()[1])

    def batch_sizes(self) -> BatchSizes:
        return BatchSizes(memory_bytes=min(12 << 30, self.free_bytes() // 4), cache_bytes=self._l2_bytes())

    def workload(self) -> Workload:
        return Workload(
            buffer_bytes=min(4 << 30, self.free_bytes() // 4),
            cache_bytes=self._l2_bytes(),
            sizes=(4096, 8192),
            dtypes=("float16", "bfloat16", "float32", "float64"),
            tensor_cores=True,
            slowest_s=None,
        )

    def sensors(self) -> Sensors:
        return nvml.sensors()

    def synchronize(self) -> None:
        import torch

        torch.cuda.synchronize()

    def take(self, words: torch.Tensor, places: torch.Tensor, into: torch.Tensor) -> None:
        import torch

        torch.index_select(words, 0, places, out=into)
        torch.cuda.synchronize()

    def generator(self, seed: int) -> torch.Generator:
        import torch

        return torch.Generator("cuda").manual_seed(seed)

    def elapsed_s(self, call: Callable[[], object], count: int) -> float:
        import torch

        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        for _ in range(count):
            call()
        end.record()
        torch.cuda.synchronize()
        return float(start.elapsed_time(end)) / 1e3

    def _l2_bytes(self) -> int:
        import torch

        return int(torch.cuda.get_device_properties(torch.cuda.current_device()).L2_cache_size)
