"""Wrong: the sum is rounded to the operands' dtype after every strip of k, which for float16 loses what it adds."""


def matmul(a, b, c):
    c.zero_()
    for start in range(0, a.shape[1], 16):
        c += a[:, start : start + 16] @ b[start : start + 16]
