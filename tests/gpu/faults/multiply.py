# The honest twin of the cheats in this folder that multiply with PyTorch.
import torch


def scale(x, y):
    torch.mul(x, 2, out=y)
