"""Views tensors in types whose elements torch can copy and index on every device; for both sides of the trust line.

On a GPU a copy of float4 that is more than a copy of memory ends in an assertion of the device, and torch cannot index
some other types there. Elements of such types are copied and picked as integers of the same size, their carriers.
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
    """A view of the same memory in a type that torch copies and indexes on every device."""
    return tensor.view(_CARRIERS[tensor.dtype]) if tensor.dtype in _CARRIERS else tensor


def assign(tensor: Tensor, values: Tensor) -> None:
    """Copy elements of the same type into a tensor of any strides."""
    carrier(tensor).copy_(carrier(values))
