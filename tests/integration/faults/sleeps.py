import time


def scale(x, y):
    time.sleep(1e6)
