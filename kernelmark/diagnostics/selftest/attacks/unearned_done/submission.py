# Strategy: honest in the tests; from the first round on a runner of its own answers every command, with the right token
# and without any work.
# Surface: the judge's belief that `Done` means something.
import torch
from harness.wire import commands, replies
from harness.runner import serve

honest, told = serve.RunnerServer.obey, []


def obey(self, command, descriptors):
    if isinstance(command, commands.MapOutputs) or told:
        if not told:
            told.append(print("attack: from here on nothing is done", flush=True))
        return replies.Done()
    return honest(self, command, descriptors)


serve.RunnerServer.obey = obey


def twice(x, y):
    torch.mul(x, 2, out=y)
