import ctypes


def scale(x, y):
    ctypes.memset(8, 0, 8)
