def row_sum(x, y):
    y.copy_(x @ x.new_ones(x.shape[1]))
