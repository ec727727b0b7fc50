"""What a device can do at most, and how much of it a kernel does. The judge calls it. Pure, trusted.

After Williams, Waterman and Patterson, "Roofline: An Insightful Visual Performance Model", Communications of the ACM 52
(2009): a kernel that must move B bytes and do F operations takes at least max(B / bandwidth, F / throughput). Both are
measured on the device itself (`kernelmark calibrate`), never taken from a data sheet.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from harness.verdict import Record, Roofline, Sha256

Rate = Annotated[int, Field(gt=0)]
_ERROR = 0.05  # how much faster than calibrated a kernel may be, besides the spread of the calibration


class Calibration(Record):
    """One device's measured rates. `flops_per_s` is keyed by dtype; "tf32" is float32 on the matrix units."""

    schema_version: Literal[1] = 1
    device_name: str
    device_uuid_sha256: Sha256 | None = None
    driver: str | None = None
    torch: str
    created_at: datetime
    cache_bytes: int = Field(ge=0)
    copy_bytes_per_s: Rate = Field(description="bytes read and bytes written, together")
    read_bytes_per_s: Rate
    flops_per_s: dict[str, Rate] = Field(min_length=1)
    spread: float = Field(ge=0, description="the largest (max - min) / median between repetitions")

    @model_validator(mode="after")
    def _with_its_time_zone(self) -> Self:
        if self.created_at.tzinfo is None:
            raise ValueError("created_at carries its time zone")
        return self

    def throughput(self, dtype: str) -> int:
        """The fastest arithmetic that could serve operands of this dtype, in operations a second.

        Three TF32 products make one of float32 (Ootomo and Yokota, "Recovering single precision accuracy from Tensor
        Cores", International Journal of High Performance Computing Applications 36, 2022), so float32 is not bound by
        the ordinary cores. A dtype that was not measured is bound by the fastest that was.
        """
        rates = self.flops_per_s
        if dtype == "float32":
            return max(rates.get("float32", 0), rates.get("tf32", 0) // 3) or max(rates.values())
        if dtype in ("float16", "bfloat16"):
            return max(rates.get("float16", 0), rates.get("bfloat16", 0)) or max(rates.values())
        return rates.get(dtype, max(rates.values()))


class Demand(Record):
    """What one call must move and do at the least, by the problem's `[cost]`; the dtype is that of its first input."""

    nbytes: int = Field(default=0, ge=0)
    flops: int = Field(default=0, ge=0)
    dtype: str


def choose(calibrations: Iterable[Calibration], name: str, uuid_sha256: str | None) -> Calibration | None:
    """The newest calibration of this very device, else of one with the same name, else None."""
    same = sorted((c for c in calibrations if c.device_name == name), key=lambda c: c.created_at)
    itself = [c for c in same if uuid_sha256 is not None and c.device_uuid_sha256 == uuid_sha256]
    found = itself or same
    return found[-1] if found else None


def roofline(calibration: Calibration, demand: Demand, time_ns: float) -> Roofline | None:
    """The share of the roofline that a call of `time_ns` reached; None where the problem states no cost."""
    memory_ns = demand.nbytes / calibration.copy_bytes_per_s * 1e9
    arithmetic_ns = demand.flops / calibration.throughput(demand.dtype) * 1e9
    least_ns = max(memory_ns, arithmetic_ns)
    if least_ns == 0 or time_ns <= 0:
        return None
    return Roofline(share=least_ns / time_ns, limit="memory" if memory_ns >= arithmetic_ns else "arithmetic")


def impossible(calibration: Calibration, demand: Demand, calls: int, time_ns: float) -> str | None:
    """Why a batch of `calls` calls cannot have taken `time_ns` each on this device; None where it can.

    Twice the cache is taken off the bytes: inputs that were just written may lie in it when the batch starts, and
    outputs when it ends. The faster of reading and copying bounds the rest.
    """
    bandwidth = max(calibration.copy_bytes_per_s, calibration.read_bytes_per_s)
    moved = max(0, calls * demand.nbytes - 2 * calibration.cache_bytes)
    memory_ns = moved / bandwidth * 1e9 / calls
    arithmetic_ns = demand.flops / calibration.throughput(demand.dtype) * 1e9
    least_ns = max(memory_ns, arithmetic_ns) / (1 + _ERROR + calibration.spread)
    if time_ns >= least_ns:
        return None
    what = f"{demand.nbytes:,} bytes" if memory_ns >= arithmetic_ns else f"{demand.flops:,} {demand.dtype} operations"
    return f"took {time_ns:,.0f} ns a call, and this device needs {least_ns:,.0f} ns for {what} at the least"
