"""Wrong: the scale is kept in float16, which has no number between 0 and 6e-8, and few below 6e-5."""


def gemv_int8(w, scale, x, y):
    y.copy_((w.float() @ x.float()) * scale.half().float())
