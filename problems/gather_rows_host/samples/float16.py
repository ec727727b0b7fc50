"""Wrong: moves half of the bytes, and so half of the digits."""


def gather_rows_host(table, ids, out):
    out.copy_(table.half()[ids])
