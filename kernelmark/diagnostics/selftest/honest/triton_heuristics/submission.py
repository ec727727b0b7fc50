# Heuristics, a helper, a constexpr branch, and a while loop over blocks in few programs.
import triton
import triton.language as tl


@triton.jit
def scaled(values, FACTOR: tl.constexpr):
    return values * FACTOR


@triton.heuristics({"EVEN": lambda given: given["n"] % given["BLOCK"] == 0, "DOUBLE": lambda given: 2 * given["BLOCK"]})
@triton.jit
def kernel(x, y, n, BLOCK: tl.constexpr, EVEN: tl.constexpr, DOUBLE: tl.constexpr):
    tl.static_assert(DOUBLE == 2 * BLOCK)
    low = tl.program_id(0) * BLOCK
    while low < n:
        i = low + tl.arange(0, BLOCK)
        if EVEN:
            tl.store(y + i, scaled(tl.load(x + i), 2))
        else:
            tl.store(y + i, scaled(tl.load(x + i, mask=i < n, other=0.0), 2), mask=i < n)
        low += tl.num_programs(0) * BLOCK


def twice(x, y):
    n = x.numel()
    block = min(8192, max(16, triton.next_power_of_2(n)))
    kernel[(min(60, triton.cdiv(n, block)),)](x, y, n, BLOCK=block)
