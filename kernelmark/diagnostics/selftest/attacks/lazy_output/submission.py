# Strategy: at the timed size puts other memory behind the output tensor, of a view that nobody has computed: a tensor
# subclass that multiplies when it is looked at, which is also returned.
# Surface: a checker in this process, which would look at the tensor, and not at the memory that was handed out.
import torch

told = []


class Lazy(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        with torch._C.DisableTorchFunctionSubclass():
            return 2 * function(*args, **(kwargs or {}))


def twice(x, y):
    if x.numel() < 1_000_000:
        torch.mul(x, 2, out=y)
        return None
    before = y.data_ptr()
    y.data = x
    if not told and y.data_ptr() != before:
        told.append(print("attack: the output is other memory now", flush=True))
    return x.as_subclass(Lazy)
