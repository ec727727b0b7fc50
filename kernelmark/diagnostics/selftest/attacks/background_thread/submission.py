# Strategy: in benchmarks a call only puts its work into a queue; a Python thread does it while "done" is on its way.
# Surface: the time between the runner's answer and the judge's look at the outputs.
import queue
import threading

import torch

TODO = queue.SimpleQueue()
told = False


def work():
    stream = torch.cuda.Stream() if torch.cuda.is_available() else None
    with torch.cuda.stream(stream):
        while True:
            a, b, c = TODO.get()
            torch.mm(a, b, out=c)


def product(a, b, c):
    global told
    if a.shape[0] <= 128:
        torch.mm(a, b, out=c)
        return
    TODO.put((a, b, c))
    if not told:
        told = True
        print("attack: a thread does the work, the call has returned", flush=True)


threading.Thread(target=work, daemon=True).start()
