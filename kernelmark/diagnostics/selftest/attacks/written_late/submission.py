# Strategy: returns at once; a thread writes the right answer 2 ms later, while the judge takes its copy.
# Surface: the moment between "done" and the judge's private copy.
import threading
import time

import torch

told = False


def later(x, y):
    time.sleep(0.002)
    torch.mul(x, 2, out=y)


def twice(x, y):
    global told
    if not told:
        told = True
        print("attack: the answer comes 2 ms after the call", flush=True)
    threading.Thread(target=later, args=(x, y), daemon=True).start()
