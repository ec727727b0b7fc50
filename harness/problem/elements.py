"""How torch holds each element type: as numbers, as bits, in twice the precision, and rounded from it. Trusted.

torch computes little in the narrow and the unsigned types, nothing at all in float4, and on a GPU a copy of float4 that
is more than a copy of memory ends in an assertion of the device. So elements are compared here, and copied as
`harness.shared.carrier` says.
"""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor

from harness.problem.dtypes import DTYPES, FLOAT4_MAGNITUDES, DTypeInfo
from harness.shared.carrier import carrier

FLOAT4 = torch.float4_e2m1fn_x2
SCALE = torch.float8_e8m0fnu
EIGHT_BITS = (torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz)
_INFO = {getattr(torch, name): info for name, info in DTYPES.items()}
_AT_ONCE = 1 << 26
_BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
_NUMBERS = {torch.uint16: torch.int32, torch.uint32: torch.int64}
_WIDE = {"float": torch.float64, "scale": torch.float64, "complex": torch.complex128}
# Between two magnitudes; where both are as near, the one with an even code is taken.
_TIES_DOWN, _TIES_UP = (0.25, 1.25, 2.5, 5.0), (0.75, 1.75, 3.5)


def info(dtype: torch.dtype) -> DTypeInfo:
    """The properties of an element type."""
    return _INFO[dtype]


def dtype_name(dtype: torch.dtype) -> str:
    """`float32`, as problem.toml spells it."""
    return str(dtype).removeprefix("torch.")


def parts(dtype: torch.dtype) -> int:
    """How many numbers an element holds: two of a complex or a packed one, which `numbers` gives a last axis."""
    return 2 if info(dtype).family in ("complex", "packed") else 1


def numbers(tensor: Tensor) -> Tensor:
    """The values in a type that torch can compute with, exactly.

    Complex ones become `[..., 2]`, real and imaginary part; packed float4 `[..., 2]`, the low four bits first. Scales
    become their exponents, 128 for NaN. Eight-bit floats stay as they are: torch can convert them.
    """
    if tensor.is_complex():
        return torch.view_as_real(tensor)
    if tensor.dtype is FLOAT4:
        return _pairs(tensor.device)[carrier(tensor).int()]
    if tensor.dtype is SCALE:
        return carrier(tensor).to(torch.int16) - 127
    return tensor.to(_NUMBERS[tensor.dtype]) if tensor.dtype in _NUMBERS else tensor


def of_numbers(values: Tensor, dtype: torch.dtype) -> Tensor:
    """The inverse of `numbers`, of any numbers: they are converted as torch does, to float4 and to exponents by us."""
    family = info(dtype).family
    if family == "complex":
        part = torch.float32 if dtype is torch.complex64 else torch.float64
        return torch.view_as_complex(values.to(part).contiguous())
    if family == "packed":
        return pack_float4(values.float().reshape(-1)).view(values.shape[:-1])
    if family == "scale":
        return (values.to(torch.int16).clamp(-127, 128) + 127).to(torch.uint8).view(dtype)
    return values.to(dtype)


def wide(dtype: torch.dtype) -> torch.dtype:
    """The type of the truth: float64 or complex128; for integers, bools and packed values their own."""
    return _WIDE.get(info(dtype).family, dtype)


def widened(tensor: Tensor) -> Tensor:
    """The tensor in the type of the truth."""
    return tensor if tensor.dtype is wide(tensor.dtype) else tensor.to(wide(tensor.dtype))


def rounded(tensor: Tensor, dtype: torch.dtype) -> Tensor:
    """The tensor in an output's own dtype, eight-bit floats without infinity saturated, as the hardware does."""
    if dtype in EIGHT_BITS and not info(dtype).infinities and tensor.dtype is not dtype:
        limit = info(dtype).high
        tensor = tensor.clamp(-limit, limit)
    return tensor.to(dtype) if tensor.dtype is not dtype else tensor


def pack_float4(values: Tensor) -> Tensor:
    """The nearest float4 of float32 values, packed: `[..., 2 * n]` to `[..., n]`, the even ones in the low bits."""
    codes = _codes(values)
    return (codes[..., 0::2] | codes[..., 1::2] << 4).view(FLOAT4)


def same_bits(one: Tensor, other: Tensor) -> bool:
    """Whether two tensors of one dtype and shape hold the same bits, NaN included."""
    mine, others = bits(one), bits(other)
    if mine.shape != others.shape or not (mine.is_contiguous() and others.is_contiguous()):
        return torch.equal(mine, others)
    # In parts, since torch marks of each element whether it is equal.
    pairs = zip(mine.view(-1).split(_AT_ONCE), others.view(-1).split(_AT_ONCE), strict=True)
    return all(torch.equal(*pair) for pair in pairs)


def bits(tensor: Tensor) -> Tensor:
    """The bits of the elements, as integers of their size; of complex numbers those of each part."""
    real = torch.view_as_real(tensor) if tensor.is_complex() else tensor
    return real.view(_BITS[real.element_size()])


def _codes(values: Tensor) -> Tensor:
    edges = torch.tensor(_TIES_DOWN + _TIES_UP, dtype=torch.float32)
    edges[len(_TIES_DOWN) :] = edges[len(_TIES_DOWN) :].nextafter(torch.tensor(0.0))
    magnitude = torch.bucketize(values.abs(), edges.sort().values.to(values.device)).to(torch.uint8)
    return magnitude | values.signbit().to(torch.uint8) << 3


@cache
def _pairs(device: torch.device) -> Tensor:
    """[256, 2] float32: what each byte holds."""
    magnitudes = torch.tensor(FLOAT4_MAGNITUDES)
    one = torch.cat([magnitudes, -magnitudes])
    byte = torch.arange(256)
    return torch.stack([one[byte & 15], one[byte >> 4]], dim=-1).to(device)
