"""Packing with an offset in PyTorch, an operation at a time: each part of all bytes by itself."""

import torch


def pack_offset(x: torch.Tensor, packed: torch.Tensor, width: int) -> None:
    """[rows, cols] int8 to [rows, ceil(cols · width / 8)] uint8, the first number in the low bits."""
    per_byte = 8 // width
    shifted = x.view(torch.uint8) + (1 << (width - 1))  # uint8 wraps, as two's complement does
    packed.copy_(shifted[:, ::per_byte])
    for part in range(1, per_byte):
        value = shifted[:, part::per_byte]
        packed[:, : value.shape[1]] |= value << (width * part)
