# torch.compile as it comes, writing into an argument.
import torch


@torch.compile
def product(a, b, c):
    c.copy_(a @ b)
