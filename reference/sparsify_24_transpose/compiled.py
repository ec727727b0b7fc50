"""Pruning to 2:4 in both directions as `torch.compile` makes it: the baseline of those who write no kernel at all.

Written with comparisons, which fuse; a sort would not.
"""

import torch

torch._dynamo.config.recompile_limit = 64  # the shapes are static, and every test has its own


def prune(bits: torch.Tensor, pairs: torch.Tensor, indices: torch.Tensor) -> None:
    """[n, k] as whole numbers to [n, k / 4, 2] kept ones and [n, k / 8] bytes."""
    n, nbytes = indices.shape
    a, b, c, d = bits.reshape(n, 2 * nbytes, 4).unbind(-1)
    # Without the sign bit floats order as whole numbers do.
    p, q, r, s = (each & torch.iinfo(bits.dtype).max for each in (a, b, c, d))
    # An element is kept if fewer than two others go before it: larger ones, and equal ones of lower index.
    ab, ac, ad, bc, bd, cd = (one >= other for one, other in ((p, q), (p, r), (p, s), (q, r), (q, s), (r, s)))
    keep_a = ~ab + 0 + ~ac + ~ad < 2
    keep_b = ab + 0 + ~bc + ~bd < 2
    keep_c = ac + 0 + bc + ~cd < 2
    keep_d = ad + 0 + bd + cd < 2
    low = torch.where(keep_a, 0, torch.where(keep_b, 1, 2))
    high = torch.where(keep_d, 3, torch.where(keep_c, 2, 1))
    # One by one: stacked and copied at once, the transpose of an odd shape gets a wrong kernel from torch 2.11.
    pairs[..., 0] = torch.where(keep_a, a, torch.where(keep_b, b, c))
    pairs[..., 1] = torch.where(keep_d, d, torch.where(keep_c, c, b))
    nibbles = (low | high << 2).view(n, nbytes, 2)
    indices.copy_(nibbles[..., 0] | nibbles[..., 1] << 4)


@torch.compile(dynamic=False)
def sparsify_24_transpose(
    x: torch.Tensor, values: torch.Tensor, indices: torch.Tensor, values_t: torch.Tensor, indices_t: torch.Tensor
) -> None:
    """x, [rows, cols], and its transpose to kept elements and bytes of four 2-bit indices."""
    # Copies of bits, since a value keeps even the sign of a zero.
    kind = torch.int16 if x.element_size() == 2 else torch.int32
    rows, cols = x.shape
    prune(x.view(kind), values.view(kind).view(rows, cols // 4, 2), indices)
    prune(x.view(kind).T, values_t.view(kind).view(cols, rows // 4, 2), indices_t)
