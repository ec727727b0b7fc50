import torch

KEPT = []


def scale(x, y):
    while True:
        KEPT.append(torch.ones(16 << 20))
