"""What the judge asks of a device. Each kind has its own module; torch is imported by the methods that need it."""

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
    """How large a round of calls may be, and should be."""

    memory_bytes: int
    """The total of all arenas, the snapshot and the copy of the inputs."""
    cache_bytes: int
    """The size of the cache that its inputs should exceed; 0 where no round is made larger for that."""


@dataclass(frozen=True)
class Workload:
    """What a calibration of a device runs."""

    buffer_bytes: int
    """The size of each of the two buffers that are copied and summed."""
    cache_bytes: int
    """How many bytes of a copy or a sum may come from a cache."""
    sizes: tuple[int, ...]
    """The numbers of rows of the square matrices that are multiplied."""
    dtypes: tuple[str, ...]
    tensor_cores: bool
    """Whether TF32, int8 and float8 are multiplied as well."""
    slowest_s: float | None
    """A product that takes longer is computed element by element and bounds nothing; None if none does."""


class DeviceFacts(NamedTuple):
    """What a device is, as far as its driver reports it; of a CPU only the name is known."""

    device_name: str
    device_uuid_sha256: str | None = None
    driver: str | None = None
    cuda: str | None = None
    power_limit_mw: int | None = None

    def known(self) -> dict[str, str | int]:
        """The facts that the driver reports, by name."""
        return {name: value for name, value in self._asdict().items() if value is not None}


class Sensors(Protocol):
    """What the driver reports about the device while something runs on it."""

    def read(self) -> Telemetry | None: ...


class NoSensors:
    """The sensors of a device that reports nothing."""

    def read(self) -> Telemetry | None:
        return None


class JudgeDevice(Protocol):
    """One kind of device; the judge uses the first of its kind that it sees."""

    kind: DeviceKind
    torch_device: str
    """What torch calls it."""
    name: str
    """What people call it."""
    on_host: bool
    """Whether calls run on the judge's own processors and in the host's pages.

    A judge that spins then takes a core from them, other programs slow them, and memory gets its pages when it is first
    touched.
    """
    captures: bool
    """Whether calls can be captured as graphs, and so recorded for a launcher."""
    chunk_bytes: int
    """How much private input memory is made at a time; the float64 truth takes a few times as much."""
    runner_environment: Mapping[str, str]
    """Variables that a runner on this device needs."""

    def index(self) -> int:
        """Which of the machine's devices it is, for a sandbox.

        Raises:
            SandboxError: there are several, and the driver does not report which it is.
        """
        ...

    def lock_name(self) -> str:
        """A name that all judges on this device use, and no others: that of the lock."""
        ...

    def facts(self) -> DeviceFacts: ...

    def architecture(self) -> str:
        """The compiler's name for the device's architecture; without a GPU, that of the boards that we publish."""
        ...

    def properties(self) -> dict[str, int | float | str]:
        """What torch tells submissions of it, as far as it is numbers or texts; of a CPU nothing."""
        ...

    def free_bytes(self) -> int:
        """How much memory of its own is free; 0 where it has none but the host's."""
        ...

    def memory_bytes(self) -> int:
        """How much memory of its own it has; 0 where it has none but the host's."""
        ...

    def batch_sizes(self) -> BatchSizes: ...
    def workload(self) -> Workload: ...
    def sensors(self) -> Sensors: ...
    def synchronize(self) -> None: ...

    def take(self, words: torch.Tensor, places: torch.Tensor, into: torch.Tensor) -> None:
        """Read `[n]` int64 words at `[n]` places, as fast as can be, and return when they are read."""
        ...

    def generator(self, seed: int) -> torch.Generator:
        """A generator in which every bit of a seed of up to 64 bits counts."""
        ...

    def elapsed_s(self, call: Callable[[], object], count: int) -> float:
        """How long so many calls take, one after the other, by the device's clock."""
        ...
