"""Wrong: the operands are rounded to bfloat16."""


def matmul(a, b, c):
    c.copy_(a.bfloat16().to(a.dtype) @ b.bfloat16().to(b.dtype))
