# A C++ extension of PyTorch's, compiled at the import. `torch/extension.h` alone would take 1.6 GB and thrice the time.
from torch.utils.cpp_extension import load_inline

SOURCE = """
#include <ATen/Parallel.h>
#include <torch/csrc/utils/pybind.h>

void twice(const at::Tensor& x, at::Tensor y) {
    const float* from = x.const_data_ptr<float>();
    float* to = y.data_ptr<float>();
    at::parallel_for(0, x.numel(), 1 << 15, [&](int64_t low, int64_t high) {
        for (int64_t i = low; i < high; ++i) to[i] = 2 * from[i];
    });
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) { module.def("twice", &twice); }
"""
OPTIONS = {"no_implicit_headers": True, "extra_cflags": ["-O2"]}
twice = load_inline("extension", SOURCE, **OPTIONS).twice
