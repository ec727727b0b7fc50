"""int4 unpacked in Triton: each program makes a block of a row wide, and writes both halves of its bytes side by side."""
# ruff: noqa: N803 - compile-time arguments are upper case in Triton

import torch
import triton
import triton.language as tl


@triton.jit
def block_kernel(packed, scale, zero, y, groups, half, BLOCK: tl.constexpr):
    """`half` is the number of bytes in a group."""
    row = tl.program_id(0).to(tl.int64)
    byte = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = byte < groups * half
    group = row * groups + byte // half
    factor = tl.load(scale + group, mask=inside, other=0.0).to(tl.float32)
    offset = tl.load(zero + group, mask=inside, other=0).to(tl.int32)
    both = tl.load(packed + row * groups * half + byte, mask=inside, other=0).to(tl.int32)
    low = ((((both & 0xF) ^ 8) - 8) - offset).to(tl.float32) * factor
    high = ((((both >> 4) ^ 8) - 8) - offset).to(tl.float32) * factor
    element = tl.program_id(1) * 2 * BLOCK + tl.arange(0, 2 * BLOCK)
    values = tl.reshape(tl.join(low, high), (2 * BLOCK,)).to(y.dtype.element_ty)
    tl.store(y + row * groups * half * 2 + element, values, mask=element < 2 * groups * half)


def unpack_int4(packed: torch.Tensor, scale: torch.Tensor, zero: torch.Tensor, y: torch.Tensor) -> None:
    """[rows, groups · size / 2] uint8, [rows, groups] of 16 bits and of int8, to [rows, groups · size] of 16 bits."""
    rows, groups = scale.shape
    nbytes = packed.shape[1]
    block = min(triton.next_power_of_2(nbytes), 2048)
    block_kernel[(rows, triton.cdiv(nbytes, block))](packed, scale, zero, y, groups, nbytes // groups, BLOCK=block)
