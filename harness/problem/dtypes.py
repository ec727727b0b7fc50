"""The element types that a problem may use, and their properties. Trusted; imports no torch.

The expression language, the checks of fills, the resolution of cases and the comparison use this table. The runner does
not: it looks names up in torch. `elements` reads and writes tensors of each type.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Family = Literal["float", "complex", "packed", "scale", "integer", "bool"]
"""`packed` is float4, two to a byte. A `scale` is a power of two, without a sign."""


@dataclass(frozen=True)
class DTypeInfo:
    """The properties of one element type; for complex and packed numbers, those of each part.

    `low` and `high` are the finite range. All whole numbers from `-exact` to `exact` in this range are represented
    exactly. The smallest normal number is 2 to the power of `least_exponent`.
    """

    size_bytes: int
    family: Family
    low: float
    high: float
    exact: int
    infinities: bool = False
    least_exponent: int = 0

    @property
    def eps(self) -> float:
        """The distance from 1 to the next number, for types with a fraction."""
        return 2 / self.exact

    @property
    def tiny(self) -> float:
        """The smallest normal number."""
        return 2.0**self.least_exponent

    @property
    def rounds(self) -> bool:
        """Whether answers of this type may differ from the truth by rounding errors; others must be equal."""
        return self.family in ("float", "complex", "packed")


def _float(size_bytes: int, largest: float, exact: int, least_exponent: int, *, infinities: bool = True) -> DTypeInfo:
    return DTypeInfo(size_bytes, "float", -largest, largest, exact, infinities, least_exponent)


def _complex(part: DTypeInfo) -> DTypeInfo:
    whole = part.size_bytes * 2
    return DTypeInfo(whole, "complex", part.low, part.high, part.exact, least_exponent=part.least_exponent)


def _integer(bits: int, *, signed: bool = True) -> DTypeInfo:
    low = -(2 ** (bits - 1)) if signed else 0
    high = low + 2**bits - 1
    return DTypeInfo(bits // 8, "integer", low, high, max(-low, high))


_FLOAT64 = _float(8, 1.7976931348623157e308, 2**53, -1022)
_FLOAT32 = _float(4, 3.4028234663852886e38, 2**24, -126)

DTYPES: dict[str, DTypeInfo] = {
    "float64": _FLOAT64,
    "float32": _FLOAT32,
    "float16": _float(2, 65504.0, 2**11, -14),
    "bfloat16": _float(2, 3.3895313892515355e38, 2**8, -126),
    "float8_e4m3fn": _float(1, 448.0, 2**4, -6, infinities=False),
    "float8_e5m2": _float(1, 57344.0, 2**3, -14),
    "float8_e4m3fnuz": _float(1, 240.0, 2**4, -7, infinities=False),
    "float8_e8m0fnu": DTypeInfo(1, "scale", 2.0**-127, 2.0**127, 1, least_exponent=-127),
    "float4_e2m1fn_x2": DTypeInfo(1, "packed", -6.0, 6.0, 2**2),
    "complex128": _complex(_FLOAT64),
    "complex64": _complex(_FLOAT32),
    "int64": _integer(64),
    "int32": _integer(32),
    "int16": _integer(16),
    "int8": _integer(8),
    "uint32": _integer(32, signed=False),
    "uint16": _integer(16, signed=False),
    "uint8": _integer(8, signed=False),
    "bool": DTypeInfo(1, "bool", 0, 1, 1),
}
FLOAT4_MAGNITUDES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
"""The magnitude of a float4 by its three low bits; the fourth is the sign."""
