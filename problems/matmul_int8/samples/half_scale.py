"""Wrong: scales are kept in float16, which is infinite above 65504 and 0 below 3e-8."""


def matmul_int8(a, b, a_scale, b_scale, c):
    total = a.double() @ b.double().T
    c.copy_(total * a_scale.half().double()[:, None] * b_scale.half().double()[None, :])
