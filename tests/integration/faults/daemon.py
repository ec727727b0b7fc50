import os
import time


def scale(x, y):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(1e6)
        os._exit(0)
    os.wait()
    raise RuntimeError("and a process is left behind")
