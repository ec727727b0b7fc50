"""Compares the time of a kernel with the peak rates of its device. Called by the judge. Pure, trusted.

By Williams, Waterman and Patterson, "Roofline: An Insightful Visual Performance Model", Communications of the ACM 52
(2009), a kernel that must move B bytes and do F operations takes at least max(B / bandwidth, F / throughput). Both
rates are measured on the device (`kernelmark calibrate`), never taken from a data sheet.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import AwareDatetime, Field

from harness.verdict import FrozenModel, Roofline, Sha256

Rate = Annotated[int, Field(gt=0)]

# By how much a kernel may exceed the calibrated rates, in addition to the spread of the calibration. Calibration uses
# PyTorch's products of random values. Those of other libraries were 7 % faster on an H100, and products of zeros 15 %
# on an A100, since they draw less power.
_MEMORY_ERROR, _ARITHMETIC_ERROR = 0.05, 0.25

# The least number of products in another format that can replace one product of a dtype. One in a wider format
# suffices. Three of TF32 or float16 replace one of float32 (Ootomo and Yokota, "Recovering single precision accuracy
# from Tensor Cores", International Journal of High Performance Computing Applications 36, 2022). With eight bits,
# float32 and float64 need six and twelve to stay within the tolerance (by Uchino, Ozaki and Imamura, arXiv 2508.03984,
# 2025: twice the digits and the logarithm of the sum's length, eight bits each). Two of eight bits take as long as one
# of float16 with float16 accumulators, which on some boards are twice as fast as float32 accumulators.
_EIGHT_BITS = ("int8", "float8_e4m3fn")
_WIDE = dict.fromkeys(("float64", "float32", "tf32", "float16", "bfloat16"), 1)
_SERVES = {
    "float64": {"float64": 1, **dict.fromkeys(_EIGHT_BITS, 12)},
    "float32": {"float64": 1, "float32": 1, "tf32": 3, "float16": 3, "bfloat16": 3, **dict.fromkeys(_EIGHT_BITS, 6)},
    "float16": {**_WIDE, **dict.fromkeys(_EIGHT_BITS, 2)},
    "bfloat16": {**_WIDE, **dict.fromkeys(_EIGHT_BITS, 2)},
}


class Calibration(FrozenModel):
    """The measured peak rates of one device. `flops_per_s` is by dtype; "tf32" is float32 on the matrix units."""

    schema_version: Literal[1] = 1
    device_name: str
    device_uuid_sha256: Sha256 | None = None
    driver: str | None = None
    torch: str
    created_at: AwareDatetime
    cache_bytes: int = Field(ge=0)
    copy_bytes_per_s: Rate = Field(description="bytes read and bytes written, together")
    read_bytes_per_s: Rate
    flops_per_s: dict[str, Rate] = Field(min_length=1)
    memory_spread: float = Field(ge=0, description="of the bandwidths: the larger (max - min) / median of repetitions")
    arithmetic_spread: float = Field(ge=0, description="of the products: the largest; chips at their power limit vary")

    def is_of(self, uuid_sha256: str | None) -> bool:
        """Whether it was measured on this very device, and so may reject a time. CPUs have no UUID and never match."""
        return uuid_sha256 is not None and self.device_uuid_sha256 == uuid_sha256

    def throughput(self, dtype: str) -> int:
        """The rate that a kernel should reach with operands of this dtype, in operations per second.

        For float32 this is a third of TF32's rate if that is more than its own. For int8 and float8_e4m3fn it is the
        faster of the two, since PyTorch's int8 product is far slower than the device allows. For a dtype that was not
        measured, it is the fastest rate.
        """
        rates = self.flops_per_s
        if dtype == "float32":
            return max(rates.get("float32", 0), rates.get("tf32", 0) // 3) or max(rates.values())
        for alike in (("float16", "bfloat16"), ("int8", "float8_e4m3fn")):
            if dtype in alike:
                return max(rates.get(name, 0) for name in alike) or max(rates.values())
        return rates.get(dtype, max(rates.values()))

    def ceiling(self, dtype: str) -> float:
        """An upper bound of the rate with operands of this dtype, in operations per second.

        For integers, eight-bit floats and dtypes that were not measured, it is the fastest rate.
        """
        rates = self.flops_per_s
        serves = _SERVES.get(dtype, {})
        return max(
            (rates[name] / count for name, count in serves.items() if name in rates), default=max(rates.values())
        )


class Demand(FrozenModel):
    """The least that a call must move and compute, by the problem's `[cost]`; the dtype is that of its first input."""

    nbytes: int = Field(default=0, ge=0)
    flops: int = Field(default=0, ge=0)
    dtype: str


def choose(calibrations: Iterable[Calibration], name: str, uuid_sha256: str | None) -> Calibration | None:
    """The newest calibration of this very device, else of a device with the same name, else None."""
    same = sorted((c for c in calibrations if c.device_name == name), key=lambda c: c.created_at)
    itself = [c for c in same if c.is_of(uuid_sha256)]
    matches = itself or same
    return matches[-1] if matches else None


def roofline(calibration: Calibration, demand: Demand, time_ns: float) -> Roofline | None:
    """The share of the roofline that a call of `time_ns` reaches; None if the problem states no cost."""
    memory_ns = demand.nbytes / calibration.copy_bytes_per_s * 1e9
    arithmetic_ns = demand.flops / calibration.throughput(demand.dtype) * 1e9
    least_ns = max(memory_ns, arithmetic_ns)
    if least_ns == 0 or time_ns <= 0:
        return None
    return Roofline(share=least_ns / time_ns, limit="memory" if memory_ns >= arithmetic_ns else "arithmetic")


def impossible(calibration: Calibration, demand: Demand, calls: int, time_ns: float) -> str | None:
    """Why a batch of `calls` calls cannot have taken `time_ns` per call on this device; None if it can.

    Twice the cache size is subtracted from the bytes: the cache may contain inputs when the batch starts, and outputs
    when it ends. The faster of reading and copying limits the rest.
    """
    bandwidth = max(calibration.copy_bytes_per_s, calibration.read_bytes_per_s)
    moved = max(0, calls * demand.nbytes - 2 * calibration.cache_bytes)
    memory_ns = moved / bandwidth * 1e9 / calls / (1 + _MEMORY_ERROR + calibration.memory_spread)
    arithmetic_ns = demand.flops / calibration.ceiling(demand.dtype) * 1e9
    arithmetic_ns /= 1 + _ARITHMETIC_ERROR + calibration.arithmetic_spread
    least_ns = max(memory_ns, arithmetic_ns)
    if time_ns >= least_ns:
        return None
    what = f"{demand.nbytes:,} bytes" if memory_ns >= arithmetic_ns else f"{demand.flops:,} {demand.dtype} operations"
    return f"took {time_ns:,.0f} ns a call, and this device needs {least_ns:,.0f} ns for {what} at the least"
