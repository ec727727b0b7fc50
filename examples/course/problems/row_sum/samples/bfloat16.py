"""Wrong: adds in bfloat16."""


def row_sum(x, y):
    y.copy_(x.bfloat16().sum(dim=1))
