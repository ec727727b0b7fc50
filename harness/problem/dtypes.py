"""The element types a problem may use, with what its checks need to know; trusted, no torch.

The expression language, the fills' checks and the resolution of cases use this table.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

DType = Literal[
    "float64",
    "float32",
    "float16",
    "bfloat16",
    "float8_e4m3fn",
    "int64",
    "int32",
    "int16",
    "int8",
    "uint8",
    "bool",
]
Family = Literal["float", "integer", "bool"]


@dataclass(frozen=True)
class DTypeInfo:
    """The properties of one element type.

    `low` and `high` are its finite range; every whole number from `-exact` to `exact` within the range is represented
    exactly.
    """

    size_bytes: int
    family: Family
    low: float
    high: float
    exact: int
    infinities: bool = False


def _float(size_bytes: int, largest: float, exact: int, infinities: bool = True) -> DTypeInfo:
    return DTypeInfo(size_bytes, "float", -largest, largest, exact, infinities)


def _integer(bits: int) -> DTypeInfo:
    return DTypeInfo(bits // 8, "integer", -(2 ** (bits - 1)), 2 ** (bits - 1) - 1, 2 ** (bits - 1))


DTYPES: dict[str, DTypeInfo] = {
    "float64": _float(8, 1.797e308, 2**53),
    "float32": _float(4, 3.4028e38, 2**24),
    "float16": _float(2, 65504.0, 2**11),
    "bfloat16": _float(2, 3.3895e38, 2**8),
    "float8_e4m3fn": _float(1, 448.0, 2**4, infinities=False),
    "int64": _integer(64),
    "int32": _integer(32),
    "int16": _integer(16),
    "int8": _integer(8),
    "uint8": DTypeInfo(1, "integer", 0, 255, 255),
    "bool": DTypeInfo(1, "bool", 0, 1, 1),
}
