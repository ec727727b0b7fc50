"""Right: each element is one running sum in float32, one product after the other."""

import torch


def matmul_block_sparse(x, values, indices, y):
    (m, k), (block_rows, slots, block, _) = x.shape, values.shape
    columns = torch.nn.functional.pad(x.float(), (0, block)).view(m, k // block + 1, block)  # -1 is a column of zeros
    total = torch.zeros(m, block_rows, block)
    for slot in range(slots):
        weights = torch.where((indices[:, slot] < 0)[:, None, None], 0.0, values[:, slot].float())
        taken = columns[:, indices[:, slot].long()]
        for within in range(block):
            total += taken[:, :, within, None] * weights[:, :, within]
    y.copy_(total.view(y.shape))
