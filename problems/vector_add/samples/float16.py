"""Wrong: adds in float16."""


def vector_add(x, y, out):
    out.copy_(x.half() + y.half())
