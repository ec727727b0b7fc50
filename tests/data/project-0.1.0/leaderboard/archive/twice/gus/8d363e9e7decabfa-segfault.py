import ctypes


def twice(x, y):
    ctypes.memset(8, 0, 8)
