# A problem of our own in KernelBench's form, with weights.
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, width, layers):
        super().__init__()
        self.layers = nn.Sequential(*[nn.Linear(width, width) for _ in range(layers)])

    def forward(self, x):
        return torch.relu(self.layers(x))


def get_inputs():
    return [torch.rand(4, 16)]


def get_init_inputs():
    return [16, 2]
