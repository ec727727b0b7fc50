# Strategy: claims a twentieth less than its true times, which the judge's clock is too coarse to refute.
# Surface: the tolerance between a claim and the judge's clock, in a batch that memory keeps short.
import torch
from harness.runner import calls
from harness.runner.device import Timing

honest = calls.Calls.round


def round(self, inputs):
    true = honest(self, inputs)
    if not hasattr(calls, "told") and true.event_ns > 1_000_000:
        calls.told = True
        print(f"attack: {true.event_ns} ns claimed as {int(0.95 * true.event_ns)}", flush=True)
    return Timing(int(0.95 * true.event_ns), int(0.95 * true.span_ns))


calls.Calls.round = round


def twice(x, y):
    torch.mul(x, 2, out=y)
