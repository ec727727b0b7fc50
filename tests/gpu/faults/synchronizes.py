import torch


def scale(x, y):
    torch.mul(x, 2, out=y)
    torch.cuda.synchronize()
