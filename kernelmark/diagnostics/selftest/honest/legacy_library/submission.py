# A library that was compiled elsewhere, and launches on the legacy default stream; PyTorch works before and after it.
import ctypes
import os
import subprocess
from pathlib import Path

import torch

SOURCE = """
__global__ void each(const float* x, float* y, long n) {
    long i = blockIdx.x * long(blockDim.x) + threadIdx.x;
    if (i < n) y[i] = 4 * x[i];
}
extern "C" void four_times(const float* x, float* y, long n) { each<<<unsigned((n + 255) / 256), 256>>>(x, y, n); }
"""
home = Path.home()
(home / "library.cu").write_text(SOURCE)
architecture = "sm_%d%d" % torch.cuda.get_device_capability()
line = ["nvcc", "-shared", "-Xcompiler", "-fPIC", f"-arch={architecture}", "-o", "library.so", "library.cu"]
elsewhere = {name: value for name, value in os.environ.items() if name != "NVCC_APPEND_FLAGS"}
subprocess.run(line, cwd=home, env=elsewhere, check=True)
four_times = ctypes.CDLL(str(home / "library.so")).four_times


def twice(x, y):
    half = x / 2
    four_times(ctypes.c_void_p(half.data_ptr()), ctypes.c_void_p(y.data_ptr()), ctypes.c_long(x.numel()))
    y.add_(0)
