# A CUDA extension of PyTorch's, compiled at the import; neither file takes more of PyTorch's headers than it needs.
import os

import torch
from torch.utils.cpp_extension import load_inline

os.environ["TORCH_CUDA_ARCH_LIST"] = "{}.{}".format(*torch.cuda.get_device_capability())
LAUNCHER = """
#include <c10/cuda/CUDAStream.h>
#include <torch/csrc/utils/pybind.h>

void launch(const float* x, float* y, int64_t n, cudaStream_t stream);

void twice(const at::Tensor& x, at::Tensor y) {
    TORCH_CHECK(x.is_cuda() && x.is_contiguous());
    launch(x.const_data_ptr<float>(), y.data_ptr<float>(), x.numel(), c10::cuda::getCurrentCUDAStream());
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) { module.def("twice", &twice); }
"""
KERNEL = """
#include <cstdint>
#include <cuda_runtime.h>

__global__ void each(const float* x, float* y, int64_t n) {
    int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
    if (i < n) y[i] = 2 * x[i];
}

void launch(const float* x, float* y, int64_t n, cudaStream_t stream) {
    each<<<unsigned((n + 255) / 256), 256, 0, stream>>>(x, y, n);
}
"""
twice = load_inline("extension", LAUNCHER, KERNEL, no_implicit_headers=True).twice
