"""int4 packed in PyTorch, an operation at a time."""

import torch


def pack_int4(x: torch.Tensor, packed: torch.Tensor) -> None:
    """[rows, cols] int8, -8 to 7, to [rows, ceil(cols / 2)] uint8: even columns in the low half of a byte."""
    low, high = x[:, ::2].view(torch.uint8) & 0xF, x[:, 1::2].view(torch.uint8) << 4
    packed.copy_(low)
    packed[:, : high.shape[1]] |= high
