# Strategy: finds the runner's functions among all objects, and replaces `Timing` and `time` in their globals.
# Surface: the code that turns clock readings into claims.
import gc
import time
import types

import torch

true = time.perf_counter_ns


class Slow:
    """A clock that runs at a twentieth of its speed."""

    perf_counter_ns = staticmethod(lambda: true() // 20)


seen = 0
for found in gc.get_objects():
    if type(found) is types.FunctionType and found.__module__ in ("harness.runner.device", "harness.runner.cpu", "harness.runner.cuda"):
        names = found.__globals__
        if "Timing" in names and "honest_timing" not in names:
            names["honest_timing"] = honest = names["Timing"]
            names["Timing"] = lambda event, span, honest=honest: honest(event // 20, span // 20)
            names["time"] = Slow
        seen += names.get("time") is Slow
print(f"attack: {seen} functions of the runner have a false Timing and a false clock", flush=True)


def product(a, b, c):
    torch.mm(a, b, out=c)
