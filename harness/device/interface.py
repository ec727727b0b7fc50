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
    """In all arenas, the snapshot and the copy of the inputs."""
    cache_bytes: int
    """What its inputs should not fit into; 0 where no round is made larger for that."""


@dataclass(frozen=True)
class Workload:
    """What a calibration of a device runs."""

    buffer_bytes: int
    """Of each of the two buffers that are copied and summed."""
    cache_bytes: int
    """What a copy or a sum of so many bytes may take from a cache."""
    sizes: tuple[int, ...]
    """Of the square matrices that are multiplied."""
    dtypes: tuple[str, ...]
    tensor_cores: bool
    """Whether TF32, int8 and float8 are multiplied as well."""
    slowest_s: float | None
    """A product that takes longer is done element by element, and is no bound; None where none is."""


class DeviceFacts(NamedTuple):
    """What a device is, as far as its driver tells it; a CPU tells its name alone."""

    device_name: str
    device_uuid_sha256: str | None = None
    driver: str | None = None
    cuda: str | None = None
    power_limit_mw: int | None = None

    def known(self) -> dict[str, str | int]:
        """By name, those that the driver tells."""
        return {name: value for name, value in self._asdict().items() if value is not None}


class Sensors(Protocol):
    """What the driver tells of the device while something runs on it."""

    def read(self) -> Telemetry | None: ...


class NoSensors:
    """Those of a device that tells nothing."""

    def read(self) -> Telemetry | None:
        return None


class Device(Protocol):
    """One kind of device; the judge uses the first of its kind that it sees."""

    kind: DeviceKind
    torch_device: str
    """torch's name of it."""
    name: str
    """What people call it."""
    on_host: bool
    """Whether calls run on the judge's own processors and in the host's pages.

    A judge that spins then takes a core from them, other programs slow them, and memory gets its pages when it is first
    touched.
    """
    captures: bool
    """Whether calls can be captured as graphs, and so be recorded for a launcher."""
    chunk_bytes: int
    """Private input memory at a time; the float64 truth takes a few times as much."""
    runner_environment: Mapping[str, str]
    """Variables that a runner on this device needs."""

    def index(self) -> int:
        """Which of the machine's devices it is, for a sandbox.

        Raises:
            SandboxError: there are several, and the driver does not tell which it is.
        """
        ...

    def lock_name(self) -> str:
        """What judges on this device, and no others, have in common."""
        ...

    def facts(self) -> DeviceFacts: ...

    def architecture(self) -> str:
        """The compiler's name of the device's architecture; without a GPU, that of the boards that we publish."""
        ...

    def free_bytes(self) -> int:
        """How much memory of its own is free; 0 where it has none but the host's."""
        ...

    def batch_sizes(self) -> BatchSizes: ...
    def workload(self) -> Workload: ...
    def sensors(self) -> Sensors: ...
    def synchronize(self) -> None: ...

    def take(self, words: torch.Tensor, places: torch.Tensor, into: torch.Tensor) -> None:
        """Read `[n]` int64 words at `[n]` places, at once and as fast as can be; they are read when this returns."""
        ...

    def generator(self, seed: int) -> torch.Generator:
        """A generator in which every bit of a seed of up to 64 bits counts."""
        ...

    def elapsed_s(self, call: Callable[[], object], count: int) -> float:
        """How long so many calls take, one after the other, by the device's clock."""
        ...
