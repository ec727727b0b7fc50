"""Wrong: squares in float16, whose range is exceeded long before that of float32."""


def square(x, y):
    y.copy_(x.half().square())
