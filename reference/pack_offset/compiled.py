"""Packing with an offset as `torch.compile` makes it: the baseline of those who write no kernel at all."""

import torch

torch._dynamo.config.recompile_limit = 64  # the shapes are static, and every test has its own


@torch.compile(dynamic=False)
def pack_offset(x: torch.Tensor, packed: torch.Tensor, width: int) -> None:
    """[rows, cols] int8 to [rows, ceil(cols · width / 8)] uint8, the first number in the low bits."""
    per_byte, half = 8 // width, 1 << (width - 1)
    # Not a sum: with Triton 3.6 ptxas adds 0 for `half` to some of the numbers.
    shifted = (x.to(torch.int32) & (2 * half - 1)) ^ half
    shifted = torch.nn.functional.pad(shifted, (0, -x.shape[1] % per_byte))
    total = shifted[:, ::per_byte]
    for part in range(1, per_byte):
        total = total | shifted[:, part::per_byte] << (width * part)
    packed.copy_(total.to(torch.uint8))
