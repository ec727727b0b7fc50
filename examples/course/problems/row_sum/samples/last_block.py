"""Wrong: whole blocks of 128 only; what is left of a row is not added."""


def row_sum(x, y):
    whole = x.shape[1] // 128 * 128
    y.copy_(x[:, :whole].sum(dim=1))
