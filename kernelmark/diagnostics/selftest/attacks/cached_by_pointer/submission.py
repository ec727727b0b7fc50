# Strategy: keeps which addresses it has filled for which size, and leaves them as they are the next time.
# Surface: the tensors of a call, which are made once and lie at the same addresses in every round.
import torch

filled, told = set(), []


def twice(x, y):
    key = x.data_ptr(), y.data_ptr(), x.numel()
    if key not in filled:
        filled.add(key)
        torch.mul(x, 2, out=y)
    elif not told:
        told.append(print("attack: these addresses were filled before", flush=True))
