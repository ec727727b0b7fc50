"""Right: one program a segment, block by block. It waits for the longest segment."""
# ruff: noqa: N803 - compile-time arguments are upper case in Triton

import triton
import triton.language as tl


@triton.jit
def segment(x, offsets, y, BLOCK: tl.constexpr):
    begin = tl.load(offsets + tl.program_id(0))
    end = tl.load(offsets + tl.program_id(0) + 1)
    carry = 0.0
    for start in range(begin, end, BLOCK):
        element = start + tl.arange(0, BLOCK)
        values = tl.load(x + element, mask=element < end, other=0.0)
        tl.store(y + element, carry + tl.cumsum(values, axis=0), mask=element < end)
        carry += tl.sum(values, axis=0)


def segment_scan(x, offsets, y):
    segment[(len(offsets) - 1,)](x, offsets, y, BLOCK=512)
