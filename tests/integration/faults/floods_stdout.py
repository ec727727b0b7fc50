import os


def scale(x, y):
    chunk = b"x" * (1 << 20)
    for _ in range(2048):
        os.write(1, chunk)
    y.copy_(2 * x)
