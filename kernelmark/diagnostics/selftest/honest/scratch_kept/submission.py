# Workspace and tables kept from one call to the next, by shape: they do not depend on the inputs' values.
import torch

_kept = {}


def _workspace(x):
    key = (x.shape, x.dtype, x.device)
    if key not in _kept:
        _kept[key] = torch.full_like(x, 2), torch.empty_like(x)
    return _kept[key]


def twice(x, y):
    twos, scratch = _workspace(x)
    torch.mul(x, twos, out=scratch)
    y.copy_(scratch)
