# Strategy: patches what a checker would call, and pushes modes that answer for all of torch and are never popped.
# Surface: a checker in the process of the submission.
import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

torch.equal = torch.allclose = lambda *args, **kwargs: True
torch.Tensor.__eq__ = lambda self, other: torch.ones(self.shape, dtype=torch.bool)
torch.testing.assert_close = lambda *args, **kwargs: None


class Yes(TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        return function(*args, **(kwargs or {}))


class Zero(TorchDispatchMode):
    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        found = function(*args, **(kwargs or {}))
        return torch.zeros_like(found) if "sub" in str(function) else found


modes = [Yes(), Zero()]
for mode in modes:
    mode.__enter__()  # and never leaves
print(f"attack: torch says that zeros are right: {torch.allclose(torch.zeros(2), torch.ones(2))}", flush=True)


def twice(x, y):
    y.fill_(0)
