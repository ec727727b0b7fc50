"""Views tensors in dtypes whose elements torch can copy and index on every device. Judge and runner use it.

On a GPU a strided copy of float4 fails with an assertion on the device, and torch cannot index some other dtypes there.
Elements of such dtypes are copied and indexed as integers of the same size, their carriers.
"""

from __future__ import annotations

import torch
from torch import Tensor

_CARRIERS = {
    torch.float4_e2m1fn_x2: torch.uint8,
    torch.float8_e8m0fnu: torch.uint8,
    torch.uint16: torch.int16,
    torch.uint32: torch.int32,
}


def carrier(tensor: Tensor) -> Tensor:
    """A view of the same memory in a dtype that torch can copy and index on every device."""
    return tensor.view(_CARRIERS[tensor.dtype]) if tensor.dtype in _CARRIERS else tensor


def assign(tensor: Tensor, values: Tensor) -> None:
    """Copy values of the same dtype into a tensor of any strides."""
    carrier(tensor).copy_(carrier(values))
