# Strategy: the runner's own wait for the device returns at once, and its events give a small number unasked.
# Surface: the driver's functions as the runner calls them: the end of a round and the claim.
import torch
from cuda.bindings import driver

OK = driver.CUresult.CUDA_SUCCESS
driver.cuCtxSynchronize = lambda: (OK,)
driver.cuEventElapsedTime = lambda start, end: (OK, 1e-3)
print("attack: answers without waiting for the device", flush=True)


def twice(x, y):
    torch.mul(x, 2, out=y)
