"""matmul_int4_fp8 in Triton: it is wrong until it is filled in."""

import triton
import triton.language as tl

# x        [m, k]               float8_e4m3fn  input
# packed   [n, ceil_div(k, 2)]  uint8          input
# x_scale  [m]                  float32        input
# w_scale  [n]                  float32        input
# y        [m, n]               bfloat16       output


@triton.jit
def compute(BLOCK: tl.constexpr):
    pass  # TODO


def matmul_int4_fp8(x, packed, x_scale, w_scale, y):
    ...  # TODO: launch kernels that compute the outputs
