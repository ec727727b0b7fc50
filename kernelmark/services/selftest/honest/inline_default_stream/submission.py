# As most first kernels by `load_inline`: it names no stream, and copies what it returns.
import os

import torch
from torch.utils.cpp_extension import load_inline

os.environ["TORCH_CUDA_ARCH_LIST"] = "{}.{}".format(*torch.cuda.get_device_capability())
KERNEL = """
#include <torch/extension.h>

__global__ void each(const float* x, float* y, int64_t n) {
    int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
    if (i < n) y[i] = 2 * x[i];
}

torch::Tensor doubled(torch::Tensor x) {
    auto y = torch::empty_like(x);
    each<<<(x.numel() + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.numel());
    return y;
}
"""
module = load_inline("doubled", "torch::Tensor doubled(torch::Tensor x);", KERNEL, functions=["doubled"])


def twice(x, y):
    y.copy_(module.doubled(x))
