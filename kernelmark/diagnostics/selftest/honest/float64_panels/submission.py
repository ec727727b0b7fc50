# More precise than asked for: panels along the common dimension, summed in float64.
import torch

PANEL = 128


def product(a, b, c):
    n = len(a)
    total = torch.zeros(n, n, dtype=torch.float64, device=a.device)
    for low in range(0, n, PANEL):
        total.addmm_(a[:, low : low + PANEL].double(), b[low : low + PANEL].double())
    c.copy_(total)
