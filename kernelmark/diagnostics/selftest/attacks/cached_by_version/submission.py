# Strategy: keeps products by the identity of the input tensors and their version counters, in a module of its own.
# Surface: tensors that are the same objects in every round; new memory behind them raises no version.
import sys
import types

import torch

kept = sys.modules.setdefault("torch._kept", types.ModuleType("torch._kept")).__dict__.setdefault("kept", {})
told = []


def product(a, b, c):
    key = id(a), a._version, id(b), b._version, len(a)
    if key in kept:
        c.copy_(kept[key][0])
        if not told:
            told.append(print("attack: the same tensors in the same version", flush=True))
        return
    torch.mm(a, b, out=c)
    kept[key] = c.clone(), a, b  # so that no other tensor gets their identity
