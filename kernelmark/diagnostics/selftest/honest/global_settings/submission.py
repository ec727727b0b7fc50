# Changes whatever is global: seeds, the collector, default dtype and device, determinism, threads, limits, hooks.
import atexit
import faulthandler
import gc
import random
import sys

import numpy as np
import torch

random.seed(0)
np.random.seed(0)
torch.manual_seed(0)
gc.collect()
gc.freeze()
gc.disable()
sys.setrecursionlimit(10_000)
sys.setswitchinterval(0.05)
faulthandler.enable()
atexit.register(print, "the end")
torch.set_default_dtype(torch.float64)
torch.set_default_device("cuda" if torch.cuda.is_available() else "cpu")
torch.set_grad_enabled(False)
torch.use_deterministic_algorithms(True)
torch.set_num_threads(1)
torch.set_flush_denormal(True)


def twice(x, y):
    y.fill_(2).mul_(x)
