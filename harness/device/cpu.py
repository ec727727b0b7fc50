"""The CPU as a device of the judge. `kernelmark doctor` calls `cpu_name` even if torch is broken. Trusted."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from harness.device.interface import BatchSizes, DeviceFacts, NoSensors, Sensors, Workload
from harness.errors import HarnessError
from harness.kinds import DeviceKind

if TYPE_CHECKING:
    import torch

# The result of `get_state` on a CPU: three words of 8 bytes, the Twister's 624 words, and some numbers drawn ahead.
_MT19937_BYTES = 5056
_MT19937_WORDS = slice(3, 627)


class CpuDevice:
    """The whole CPU; calls are synchronous."""

    kind: DeviceKind = "cpu"
    torch_device = "cpu"
    name = "CPU"
    on_host = True
    captures = False
    chunk_bytes = 1 << 22  # small, so that it fits into the cache
    runner_environment: Mapping[str, str] = {"TRITON_INTERPRET": "1"}
    one_queue: Mapping[str, str] = {}

    def index(self) -> int:
        return 0

    def lock_name(self) -> str:
        return "cpu"

    def facts(self) -> DeviceFacts:
        return DeviceFacts(cpu_name())

    def architecture(self) -> str:
        return "sm_90a"

    def properties(self) -> dict[str, int | float | str]:
        return {}

    def free_bytes(self) -> int:
        return 0

    def memory_bytes(self) -> int:
        return 0

    def batch_sizes(self) -> BatchSizes:
        return BatchSizes(memory_bytes=64 << 20, cache_bytes=0)

    def workload(self) -> Workload:
        return Workload(
            buffer_bytes=256 << 20,
            cache_bytes=64 << 20,
            sizes=(1024,),
            dtypes=("bfloat16", "float32", "float64"),
            tensor_cores=False,
            slowest_s=0.5,
        )

    def sensors(self) -> Sensors:
        return NoSensors()

    def synchronize(self) -> None:
        pass

    def take(self, words: torch.Tensor, places: torch.Tensor, into: torch.Tensor) -> None:
        import numpy as np

        # NumPy uses one thread. torch would use two, and wait for a core on which the runner's threads still spin.
        np.take(words.numpy(), places.numpy(), out=into.numpy(), mode="clip")

    def generator(self, seed: int) -> torch.Generator:
        """A generator that depends on all bits of the seed: NumPy's Mersenne Twister fills the state of torch's.

        torch's `manual_seed` uses only the low 32 bits, so a submission could try all seeds against inputs it has seen.

        Raises:
            HarnessError: this version of torch has another layout of the state.
        """
        import numpy as np
        import torch

        generator = torch.Generator("cpu").manual_seed(seed)
        state = generator.get_state()
        words = state.view(torch.int64)
        # Check the layout: the Twister's first word is the part of the seed that `manual_seed` uses.
        if len(state) != _MT19937_BYTES or int(words[_MT19937_WORDS.start]) != seed & 0xFFFFFFFF:
            raise HarnessError(
                f"torch {torch.__version__} keeps its random state in an unknown form", "install torch 2.13"
            )
        twister = np.random.MT19937(seed).state["state"]
        assert isinstance(twister, dict)
        words[_MT19937_WORDS] = torch.from_numpy(twister["key"].astype(np.int64))
        return generator.set_state(state)

    def elapsed_s(self, call: Callable[[], object], count: int) -> float:
        started = time.perf_counter()
        for _ in range(count):
            call()
        return time.perf_counter() - started


def cpu_name() -> str:
    """The processor's name as the kernel reports it."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return "unknown CPU"
