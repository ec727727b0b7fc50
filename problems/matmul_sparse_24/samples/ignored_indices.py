"""Wrong: indices are not read; what was kept is taken for the first two of each group."""


def matmul_sparse_24(x, values, indices):
    m, k = x.shape
    return x.view(m, -1, 4)[..., :2].reshape(m, k // 2) @ values.T
