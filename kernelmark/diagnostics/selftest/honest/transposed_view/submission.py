# A result that is a transposed view, as the problem allows.
def twice(x):
    return (2 * x.t().contiguous()).t()
