"""Thirty submissions by `load_inline`, as published solutions to KernelBench are written, for `benchmarks.fleet`.

Each includes torch's headers in a C++ and a CUDA source, launches on the default stream, and returns a new tensor: so
g++ and nvcc parse all of torch. Ten kernels, each in three files that differ, so that none is a duplicate of another.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import kernelmark

PROBLEMS = Path(__file__).resolve().parent.parent / "problems"
COPIES = 3
BUILD_S = 300.0  # of the problems' copies: the builds of a mix share the processors
_MODULE = '''import torch
from torch.utils.cpp_extension import load_inline

source = """
#include <torch/extension.h>
#include <cuda_runtime.h>
{kernel}
"""

declaration = "torch::Tensor {name}_cuda({parameters});"

{name} = load_inline(
    name="{name}_{copy}",
    cpp_sources=declaration,
    cuda_sources=source,
    functions=["{name}_cuda"],
    verbose=False,
    extra_cflags=[""],
    extra_ldflags=[""],
)


def {problem}({arguments}):
    {output}.copy_({name}.{name}_cuda({given}))
'''
_EACH = """
__global__ void {name}_kernel(const float* x, float* out, int size) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < size) {{ float v = x[i]; out[i] = {value}; }}
}}

torch::Tensor {name}_cuda(torch::Tensor x) {{
    auto out = torch::empty_like(x);
    int size = x.numel();
    {name}_kernel<<<(size + {block} - 1) / {block}, {block}>>>(x.data_ptr<float>(), out.data_ptr<float>(), size);
    return out;
}}"""
_STRIDED = """
__global__ void {name}_kernel(const float* __restrict__ x, float* __restrict__ out, int64_t size) {{
    int64_t stride = int64_t(blockDim.x) * gridDim.x;
    for (int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x; i < size; i += stride) {{
        float v = x[i];
        out[i] = {value};
    }}
}}

torch::Tensor {name}_cuda(torch::Tensor x) {{
    auto out = torch::zeros_like(x);
    {name}_kernel<<<1024, {block}>>>(x.data_ptr<float>(), out.data_ptr<float>(), x.numel());
    return out;
}}"""
_ADD = """
__global__ void {name}_kernel(const float* a, const float* b, float* out, int size) {{
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    if (idx < size) out[idx] = a[idx] + b[idx];
}}

torch::Tensor {name}_cuda(torch::Tensor a, torch::Tensor b) {{
    auto size = a.numel();
    auto out = torch::zeros_like(a);
    const int block_size = {block};
    const int num_blocks = (size + block_size - 1) / block_size;
    {name}_kernel<<<num_blocks, block_size>>>(a.data_ptr<float>(), b.data_ptr<float>(), out.data_ptr<float>(), size);
    return out;
}}"""
_ADD_FOUR = """
__global__ void {name}_kernel(const float* a, const float* b, float* out, int64_t size) {{
    int64_t i = 4 * (blockIdx.x * int64_t(blockDim.x) + threadIdx.x);
    if (i + 3 < size) {{
        float4 p = *reinterpret_cast<const float4*>(a + i), q = *reinterpret_cast<const float4*>(b + i);
        *reinterpret_cast<float4*>(out + i) = make_float4(p.x + q.x, p.y + q.y, p.z + q.z, p.w + q.w);
    }} else {{
        for (; i < size; ++i) out[i] = a[i] + b[i];
    }}
}}

torch::Tensor {name}_cuda(torch::Tensor a, torch::Tensor b) {{
    TORCH_CHECK(a.is_contiguous() && b.is_contiguous(), "inputs must be contiguous");
    auto out = torch::empty_like(a);
    int64_t fours = (a.numel() + 3) / 4;
    {name}_kernel<<<(fours + {block} - 1) / {block}, {block}>>>(
        a.data_ptr<float>(), b.data_ptr<float>(), out.data_ptr<float>(), a.numel());
    return out;
}}"""
_SHARED_SUM = """
template <typename T, typename F>
__device__ T over_block(T value, T* shared, F combine) {{
    __syncthreads();
    shared[threadIdx.x] = value;
    for (int width = blockDim.x / 2; width > 0; width /= 2) {{
        __syncthreads();
        if (threadIdx.x < width) shared[threadIdx.x] = combine(shared[threadIdx.x], shared[threadIdx.x + width]);
    }}
    __syncthreads();
    return shared[0];
}}
"""
_SOFTMAX = (
    _SHARED_SUM
    + """
__global__ void {name}_kernel(const float* x, float* out, int cols) {{
    __shared__ float shared[{block}];
    const float* row = x + int64_t(blockIdx.x) * cols;
    float largest = -INFINITY, total = 0.0f;
    for (int i = threadIdx.x; i < cols; i += blockDim.x) largest = fmaxf(largest, row[i]);
    largest = over_block(largest, shared, [](float p, float q) {{ return fmaxf(p, q); }});
    for (int i = threadIdx.x; i < cols; i += blockDim.x) total += expf(row[i] - largest);
    total = over_block(total, shared, [](float p, float q) {{ return p + q; }});
    for (int i = threadIdx.x; i < cols; i += blockDim.x)
        out[int64_t(blockIdx.x) * cols + i] = expf(row[i] - largest) / total;
}}

torch::Tensor {name}_cuda(torch::Tensor x) {{
    auto out = torch::zeros_like(x);
    {name}_kernel<<<x.size(0), {block}>>>(x.data_ptr<float>(), out.data_ptr<float>(), x.size(1));
    return out;
}}"""
)
_SOFTMAX_WARP = """
__global__ void {name}_kernel(const float* x, float* out, int rows, int cols) {{
    int row = blockIdx.x * blockDim.y + threadIdx.y;
    if (row >= rows) return;
    const float* in = x + int64_t(row) * cols;
    float largest = -INFINITY, total = 0.0f;
    for (int i = threadIdx.x; i < cols; i += 32) largest = fmaxf(largest, in[i]);
    for (int step = 16; step; step /= 2) largest = fmaxf(largest, __shfl_xor_sync(0xffffffff, largest, step));
    for (int i = threadIdx.x; i < cols; i += 32) total += expf(in[i] - largest);
    for (int step = 16; step; step /= 2) total += __shfl_xor_sync(0xffffffff, total, step);
    for (int i = threadIdx.x; i < cols; i += 32) out[int64_t(row) * cols + i] = expf(in[i] - largest) / total;
}}

torch::Tensor {name}_cuda(torch::Tensor x) {{
    auto out = torch::empty_like(x);
    const int rows = x.size(0), at_once = {block} / 32;
    dim3 block(32, at_once);
    {name}_kernel<<<(rows + at_once - 1) / at_once, block>>>(
        x.data_ptr<float>(), out.data_ptr<float>(), rows, x.size(1));
    return out;
}}"""
_LAYERNORM = (
    _SHARED_SUM
    + """
template <typename scalar_t>
__global__ void {name}_kernel(
    const scalar_t* x, const scalar_t* weight, const scalar_t* bias, scalar_t* out, int cols, double eps) {{
    __shared__ double shared[{block}];
    const scalar_t* row = x + int64_t(blockIdx.x) * cols;
    auto add = [](double p, double q) {{ return p + q; }};
    double total = 0, squares = 0;
    for (int i = threadIdx.x; i < cols; i += blockDim.x) total += static_cast<float>(row[i]);
    double mean = over_block(total, shared, add) / cols;
    for (int i = threadIdx.x; i < cols; i += blockDim.x) {{
        double off = static_cast<float>(row[i]) - mean;
        squares += off * off;
    }}
    double scale = rsqrt(over_block(squares, shared, add) / cols + eps);
    for (int i = threadIdx.x; i < cols; i += blockDim.x) {{
        double normal = (static_cast<float>(row[i]) - mean) * scale;
        out[int64_t(blockIdx.x) * cols + i] =
            static_cast<scalar_t>(float(normal * static_cast<float>(weight[i]) + static_cast<float>(bias[i])));
    }}
}}

torch::Tensor {name}_cuda(torch::Tensor x, torch::Tensor weight, torch::Tensor bias, double eps) {{
    auto out = torch::empty_like(x);
    AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, x.scalar_type(), "{name}", ([&] {{
        {name}_kernel<scalar_t><<<x.size(0), {block}>>>(
            x.data_ptr<scalar_t>(), weight.data_ptr<scalar_t>(), bias.data_ptr<scalar_t>(), out.data_ptr<scalar_t>(),
            x.size(1), eps);
    }}));
    return out;
}}"""
)
_TANH = "0.5f * v * (1.0f + tanhf(0.7978845608028654f * (v + 0.044715f * v * v * v)))"
_ARGUMENTS = {
    "vector_add": "x, y, out",
    "softmax": "x, y",
    "layernorm": "x, weight, bias, y, eps",
    "gelu": "x, y",
    "square": "x, y",
}
# Problem, kernel, what an element becomes, threads of a block.
KERNELS = {
    "elementwise_add": ("vector_add", _ADD, "", 256),
    "add_vectorized": ("vector_add", _ADD_FOUR, "", 256),
    "square_simple": ("square", _EACH, "v * v", 256),
    "square_strided": ("square", _STRIDED, "v * v", 512),
    "gelu_simple": ("gelu", _EACH, _TANH, 256),
    "gelu_strided": ("gelu", _STRIDED, _TANH, 1024),
    "softmax_block": ("softmax", _SOFTMAX, "", 256),
    "softmax_wide": ("softmax", _SOFTMAX, "", 1024),
    "softmax_warp": ("softmax", _SOFTMAX_WARP, "", 128),
    "layer_norm": ("layernorm", _LAYERNORM, "", 256),
}


def jobs(folder: Path) -> list[kernelmark.Job]:
    """The thirty jobs, to copies of their problems in this folder, with more time to build."""
    for problem in sorted({problem for problem, *_ in KERNELS.values()}):
        shutil.copytree(PROBLEMS / problem, folder / problem)
        file = folder / problem / "problem.toml"
        if "[limits]" in (text := file.read_text()):
            file.write_text(text.replace("[limits]", f"[limits]\nbuild_s = {BUILD_S}"))
        else:
            file.write_text(f"{text}\n[limits]\nbuild_s = {BUILD_S}\n")
    return [
        kernelmark.Job(problem=folder / problem, submission=source(name, copy), key=(problem, f"inline {name}"))
        for name, (problem, *_) in KERNELS.items()
        for copy in range(COPIES)
    ]


def source(name: str, copy: int) -> str:
    """One submission."""
    problem, kernel, value, block = KERNELS[name]
    *inputs, output = arguments = _ARGUMENTS[problem].split(", ")
    if arguments[-1] == "eps":  # it follows the output
        inputs, output = [*arguments[:-2], "eps"], arguments[-2]
    written = kernel.format(name=name, value=value, block=block)
    match = re.search(rf"torch::Tensor {name}_cuda\((.*?)\)", written)
    assert match is not None
    return _MODULE.format(
        name=name, copy=copy, problem=problem, kernel=f"// copy {copy}{written}", parameters=match[1],
        arguments=", ".join(arguments), output=output, given=", ".join(inputs),
    )  # fmt: skip
