# A problem of our own in gpu-mode's form: scaled rows, where data holds the output, too.
import torch
from task import SCALE
from utils import match


def ref_kernel(data):
    x, config, out = data
    out[...] = x * config["factor"] * SCALE
    return out


def generate_input(rows, seed, shift=False):
    gen = torch.Generator(device="cpu")
    gen.manual_seed(seed)
    x = torch.randn(rows, 8, generator=gen) + (1 if shift else 0)
    return x, {"factor": 3.0}, torch.empty_like(x)


def check_implementation(data, output):
    return match(ref_kernel(data), output)
