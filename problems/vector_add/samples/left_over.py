"""Wrong: whole groups of four only, as a kernel with 16-byte loads has them; one to three elements are left over."""


def vector_add(x, y, out):
    whole = x.numel() // 4 * 4
    out[:whole] = x[:whole] + y[:whole]
