import triton
import triton.language as tl


@triton.jit
def kernel(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + i, mask=i < n)
    twice = tl.inline_asm_elementwise("add.f32 $0, $1, $1;", "=f,f", [value], dtype=tl.float32, is_pure=True, pack=1)
    tl.store(y + i, twice, mask=i < n)


def twice(x, y):
    n = x.numel()
    kernel[(triton.cdiv(n, 4096),)](x, y, n, BLOCK=4096)
