import torch


def match(expected, got):
    return "" if torch.allclose(expected, got, rtol=1e-3, atol=1e-3) else "mismatch found: they differ"
