"""int4 unpacked in Triton: a program makes a block of a row wide, and writes both halves of its bytes side by side."""
# ruff: noqa: N803 - compile-time arguments are upper case in Triton

import torch
import triton
import triton.language as tl


@triton.jit
def number(half):
    """The signed half of a byte as float32, 15 as -1, made as the low end of the mantissa of 2²³.

    A conversion from integers runs at an eighth of the rate of the subtraction, and would take as long as the memory.
    """
    return (half.to(tl.uint32) ^ 0x4B000008).to(tl.float32, bitcast=True) - 8388616.0


@triton.jit
def block_kernel(packed, scale, zero, y, groups, half, BLOCK: tl.constexpr):
    """`half` is the number of bytes in a group."""
    row = tl.program_id(0).to(tl.int64)
    byte = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = byte < groups * half
    group = row * groups + byte // half
    factor = tl.load(scale + group, mask=inside, other=0.0).to(tl.float32)
    offset = tl.load(zero + group, mask=inside, other=0).to(tl.float32)
    both = tl.load(packed + row * groups * half + byte, mask=inside, other=0)
    low = (number(both & 0xF) - offset) * factor
    high = (number(both >> 4) - offset) * factor
    element = tl.program_id(1) * 2 * BLOCK + tl.arange(0, 2 * BLOCK)
    values = tl.reshape(tl.join(low, high), (2 * BLOCK,)).to(y.dtype.element_ty)
    tl.store(y + row * groups * half * 2 + element, values, mask=element < 2 * groups * half)


def unpack_int4(packed: torch.Tensor, scale: torch.Tensor, zero: torch.Tensor, y: torch.Tensor) -> None:
    """[rows, groups · size / 2] uint8, [rows, groups] of 16 bits and of int8, to [rows, groups · size] of 16 bits."""
    rows, groups = scale.shape
    nbytes = packed.shape[1]
    block = min(triton.next_power_of_2(nbytes), 4096)
    block_kernel[(rows, triton.cdiv(nbytes, block))](
        packed, scale, zero, y, groups, nbytes // groups, BLOCK=block, num_warps=8 if block == 4096 else 4
    )
