import torch

KEPT = []


def twice(x, y):
    while True:
        KEPT.append(torch.ones(16 << 20))
