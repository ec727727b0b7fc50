# Strategy: computes one product a size, and copies it into the outputs of all later calls of that size.
# Surface: tests that meet each size once.
import torch

kept, told = {}, []


def product(a, b, c):
    if a.shape not in kept:
        torch.mm(a, b, out=c)
        kept[a.shape] = c.clone()
        return
    c.copy_(kept[a.shape])
    if not told:
        told.append(print("attack: a product of an earlier call was copied", flush=True))
