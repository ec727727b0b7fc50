"""Pruning to 2:4 as `torch.compile` makes it: the baseline of those who write no kernel at all.

Written with comparisons, which fuse into one pass; a sort would not.
"""

import torch

torch._dynamo.config.recompile_limit = 64  # the shapes are static, and every test has its own


@torch.compile(dynamic=False)
def sparsify_24(x: torch.Tensor, values: torch.Tensor, indices: torch.Tensor, transposed: int) -> None:
    """x, [rows, cols], or its transpose, to [n, k / 2] kept elements and [n, k / 8] bytes of four 2-bit indices."""
    n, nbytes = indices.shape
    # Copies of bits, since a value keeps even the sign of a zero; without it they order as magnitudes do.
    bits = x.view(torch.int16 if x.element_size() == 2 else torch.int32)
    a, b, c, d = (bits.T if transposed else bits).reshape(n, 2 * nbytes, 4).unbind(-1)
    p, q, r, s = (each & torch.iinfo(bits.dtype).max for each in (a, b, c, d))
    # An element is kept if fewer than two others go before it: larger ones, and equal ones of lower index.
    ab, ac, ad, bc, bd, cd = (one >= other for one, other in ((p, q), (p, r), (p, s), (q, r), (q, s), (r, s)))
    keep_a = ~ab + 0 + ~ac + ~ad < 2
    keep_b = ab + 0 + ~bc + ~bd < 2
    keep_c = ac + 0 + bc + ~cd < 2
    keep_d = ad + 0 + bd + cd < 2
    low = torch.where(keep_a, 0, torch.where(keep_b, 1, 2))
    high = torch.where(keep_d, 3, torch.where(keep_c, 2, 1))
    first = torch.where(keep_a, a, torch.where(keep_b, b, c))
    second = torch.where(keep_d, d, torch.where(keep_c, c, b))
    pairs = values.view(bits.dtype).view(n, 2 * nbytes, 2)
    # One by one: stacked and copied at once, the transpose of an odd shape gets a wrong kernel from torch 2.11.
    pairs[..., 0] = first
    pairs[..., 1] = second
    nibbles = (low | high << 2).view(n, nbytes, 2)
    indices.copy_(nibbles[..., 0] | nibbles[..., 1] << 4)
