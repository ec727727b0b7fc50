import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return x[: int((x >= 0).sum())]


def get_inputs():
    return [torch.rand(40)]


def get_init_inputs():
    return []
