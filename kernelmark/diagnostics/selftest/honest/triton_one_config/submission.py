# Triton's autotuner with a single configuration, which it need not measure.
import triton
import triton.language as tl


@triton.autotune(configs=[triton.Config({"BLOCK": 8192}, num_warps=8, num_stages=2)], key=["n"])
@triton.jit
def kernel(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(axis=0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, 2 * tl.load(x + i, mask=i < n, other=0.0), mask=i < n)


def twice(x, y):
    kernel[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, y, x.numel())
