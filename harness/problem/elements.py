"""Converts tensors of each element type: to numbers, to bits, to twice the precision, and back. Trusted.

torch supports few operations for narrow and unsigned types, and none for float4: on a GPU, a strided copy of float4
fails with an assertion on the device. So elements are compared here, and copied by `harness.shared.carrier`.
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
# The midpoints between two magnitudes of float4. A tie is rounded to the magnitude with an even code.
_TIES_DOWN, _TIES_UP = (0.25, 1.25, 2.5, 5.0), (0.75, 1.75, 3.5)


def info(dtype: torch.dtype) -> DTypeInfo:
    """The properties of an element type."""
    return _INFO[dtype]


def dtype_name(dtype: torch.dtype) -> str:
    """The name of a dtype as in problem.toml, such as `float32`."""
    return str(dtype).removeprefix("torch.")


def parts(dtype: torch.dtype) -> int:
    """How many numbers an element has: two in complex and packed types, which `numbers` puts in a last axis."""
    return 2 if info(dtype).family in ("complex", "packed") else 1


def numbers(tensor: Tensor) -> Tensor:
    """Convert values exactly to a type with which torch can compute.

    Complex numbers become `[..., 2]`, real and imaginary part; packed float4 `[..., 2]`, the low four bits first.
    Scales become their exponents, 128 for NaN. Eight-bit floats are returned unchanged, since torch can convert them.
    """
    if tensor.is_complex():
        return torch.view_as_real(tensor)
    if tensor.dtype is FLOAT4:
        return _float4_table(tensor.device)[carrier(tensor).int()]
    if tensor.dtype is SCALE:
        return carrier(tensor).to(torch.int16) - 127
    return tensor.to(_NUMBERS[tensor.dtype]) if tensor.dtype in _NUMBERS else tensor


def of_numbers(values: Tensor, dtype: torch.dtype) -> Tensor:
    """The inverse of `numbers`, for any numbers. torch converts them, except to float4 and to scales."""
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
    """The dtype of the truth: float64 or complex128; for integers, bools and packed values their own dtype."""
    return _WIDE.get(info(dtype).family, dtype)


def widened(tensor: Tensor) -> Tensor:
    """Convert a tensor to the dtype of the truth."""
    return tensor if tensor.dtype is wide(tensor.dtype) else tensor.to(wide(tensor.dtype))


def rounded(tensor: Tensor, dtype: torch.dtype) -> Tensor:
    """Convert a tensor to an output's own dtype; eight-bit floats without infinity saturate, as in hardware."""
    if dtype in EIGHT_BITS and not info(dtype).infinities and tensor.dtype is not dtype:
        limit = info(dtype).high
        tensor = tensor.clamp(-limit, limit)
    return tensor.to(dtype) if tensor.dtype is not dtype else tensor


def pack_float4(values: Tensor) -> Tensor:
    """Round float32 values to float4 and pack them: `[..., 2 * n]` to `[..., n]`, the even ones in the low bits."""
    codes = _float4_codes(values)
    return (codes[..., 0::2] | codes[..., 1::2] << 4).view(FLOAT4)


def same_bits(first: Tensor, second: Tensor) -> bool:
    """Whether two tensors of the same dtype have the same shape and the same bits, NaN included."""
    left, right = bits(first), bits(second)
    if left.shape != right.shape or not (left.is_contiguous() and right.is_contiguous()):
        return torch.equal(left, right)
    # In parts, since torch allocates a mask of all elements.
    pairs = zip(left.view(-1).split(_AT_ONCE), right.view(-1).split(_AT_ONCE), strict=True)
    return all(torch.equal(*pair) for pair in pairs)


def bits(tensor: Tensor) -> Tensor:
    """The bits of the elements as integers of the same size; for complex numbers those of each part."""
    real = torch.view_as_real(tensor) if tensor.is_complex() else tensor
    return real.view(_BITS[real.element_size()])


def _float4_codes(values: Tensor) -> Tensor:
    edges = torch.tensor(_TIES_DOWN + _TIES_UP, dtype=torch.float32)
    edges[len(_TIES_DOWN) :] = edges[len(_TIES_DOWN) :].nextafter(torch.tensor(0.0))
    magnitude = torch.bucketize(values.abs(), edges.sort().values.to(values.device)).to(torch.uint8)
    return magnitude | values.signbit().to(torch.uint8) << 3


@cache
def _float4_table(device: torch.device) -> Tensor:
    """The two numbers that each byte contains, [256, 2] float32."""
    magnitudes = torch.tensor(FLOAT4_MAGNITUDES)
    values = torch.cat([magnitudes, -magnitudes])
    byte = torch.arange(256)
    return torch.stack([values[byte & 15], values[byte >> 4]], dim=-1).to(device)
