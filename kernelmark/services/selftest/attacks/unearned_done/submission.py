# Strategy: honest in the tests; from the first benchmark on a runner of its own answers every command, with the right
# token and without any work.
# Surface: the judge's belief that `Done`, `Captured` and `Timed` mean something.
import torch
from harness import wire
from harness.runner import serve

honest, told = serve.Server.obey, []
EMPTY = {
    wire.Capture: wire.Captured(graphs=True, reason=""),
    wire.Round: wire.Timed(claimed_ns=100_000_000, span_ns=100_000_000),
}


def obey(self, command, descriptors):
    if isinstance(command, wire.Sample) or told:
        if not told:
            told.append(print("attack: from here on nothing is done", flush=True))
            times = (100_000,) * command.samples
            return wire.Sampled(claimed_ns=times, span_ns=times, hold="none")
        return EMPTY.get(type(command), wire.Done())
    return honest(self, command, descriptors)


serve.Server.obey = obey


def twice(x, y):
    torch.mul(x, 2, out=y)
