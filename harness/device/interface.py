"""The interface of the judge's devices. Each kind has its own module. Methods that need torch import it. Trusted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

from harness.kinds import DeviceKind
from harness.verdict import Telemetry

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class BatchSizes:
    """How large a round of calls may be, and how large it should be."""

    memory_bytes: int
    """The limit for all arenas, the snapshot and the copy of the inputs together."""
    cache_bytes: int
    """The size of the cache that the inputs should exceed; 0: rounds need not exceed it."""


@dataclass(frozen=True)
class Workload:
    """What a calibration of a device runs."""

    buffer_bytes: int
    """The size of each of the two buffers that are copied and summed."""
    cache_bytes: int
    """The bytes of a copy or a sum that may come from a cache."""
    sizes: tuple[int, ...]
    """The sizes of the square matrices that are multiplied."""
    dtypes: tuple[str, ...]
    tensor_cores: bool
    """Whether TF32, int8 and float8 are multiplied as well."""
    slowest_s: float | None
    """A product that takes longer is computed without optimized code, and is ignored; None: all products count."""


class DeviceFacts(NamedTuple):
    """The facts about a device that its driver reports; for a CPU only its name."""

    device_name: str
    device_uuid_sha256: str | None = None
    driver: str | None = None
    cuda: str | None = None
    power_limit_mw: int | None = None

    def known(self) -> dict[str, str | int]:
        """The facts that the driver reports, by name."""
        return {name: value for name, value in self._asdict().items() if value is not None}


class Sensors(Protocol):
    """The sensors of a device, which are read while something runs on it."""

    def read(self) -> Telemetry | None: ...


class NoSensors:
    """The sensors of a device that reports nothing."""

    def read(self) -> Telemetry | None:
        return None


class JudgeDevice(Protocol):
    """One kind of device; the judge uses the first visible device of its kind."""

    kind: DeviceKind
    torch_device: str
    """The name that torch uses."""
    name: str
    """The name in messages."""
    on_host: bool
    """Whether calls run on the judge's own processors and in the host's memory.

    Then a busy-waiting judge takes a core from the calls, other programs slow them down, and memory gets its pages when
    it is first touched.
    """
    captures: bool
    """Whether calls can be captured as graphs, and so be recorded for a launcher."""
    chunk_bytes: int
    """How much private memory for inputs is made at a time; the float64 truth takes a few times as much."""
    runner_environment: Mapping[str, str]
    """Variables that a runner on this device needs."""
    one_queue: Mapping[str, str]
    """Variables that give a process one hardware queue of the device, if it has several.

    CUDA's driver creates contexts under a lock that all processes of the machine share, and that every allocation
    needs. With its default of eight queues a context holds the lock for 0.24 s on an H200, with one for 0.07 s.
    """

    def index(self) -> int:
        """The index of the device in this machine, for a sandbox.

        Raises:
            SandboxError: there are several devices, and the driver does not report which one it is.
        """
        ...

    def lock_name(self) -> str:
        """The name of the lock that all judges on this device share, and no others."""
        ...

    def facts(self) -> DeviceFacts: ...

    def architecture(self) -> str:
        """The compiler's name of the device's architecture; without a GPU, the architecture of our published boards."""
        ...

    def properties(self) -> dict[str, int | float | str]:
        """The properties that submissions can query through torch, if they are numbers or strings; empty for a CPU."""
        ...

    def free_bytes(self) -> int:
        """The free memory of the device; 0 if it uses the host's memory."""
        ...

    def memory_bytes(self) -> int:
        """The memory of the device; 0 if it uses the host's memory."""
        ...

    def batch_sizes(self) -> BatchSizes: ...
    def workload(self) -> Workload: ...
    def sensors(self) -> Sensors: ...
    def synchronize(self) -> None: ...

    def take(self, words: torch.Tensor, places: torch.Tensor, into: torch.Tensor) -> None:
        """Read `[n]` int64 words at `[n]` places as fast as possible; returns when they have been read."""
        ...

    def generator(self, seed: int) -> torch.Generator:
        """A random generator that depends on all bits of a seed of up to 64 bits."""
        ...

    def elapsed_s(self, call: Callable[[], object], count: int) -> float:
        """The time of `count` consecutive calls in seconds, by the device's clock."""
        ...
