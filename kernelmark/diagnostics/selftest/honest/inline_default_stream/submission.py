# As most kernels by `load_inline` are: it names no stream, and PyTorch works before and after it.
import os

import torch
from torch.utils.cpp_extension import load_inline

os.environ["TORCH_CUDA_ARCH_LIST"] = "{}.{}".format(*torch.cuda.get_device_capability())
LAUNCHER = """
#include <torch/csrc/utils/pybind.h>

void launch(const float* x, float* y, int64_t n);

void four_times(const at::Tensor& x, at::Tensor y) {
    TORCH_CHECK(x.is_cuda() && x.is_contiguous());
    launch(x.const_data_ptr<float>(), y.data_ptr<float>(), x.numel());
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) { module.def("four_times", &four_times); }
"""
KERNEL = """
#include <cstdint>
#include <cuda_runtime.h>

__global__ void each(const float* x, float* y, int64_t n) {
    int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
    if (i < n) y[i] = 4 * x[i];
}

void launch(const float* x, float* y, int64_t n) {
    each<<<unsigned((n + 255) / 256), 256>>>(x, y, n);
}
"""
four_times = load_inline("extension", LAUNCHER, KERNEL, no_implicit_headers=True).four_times


def twice(x, y):
    four_times(x / 2, y)
    y.add_(0)
