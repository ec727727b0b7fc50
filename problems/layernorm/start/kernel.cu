// layernorm in CUDA: it builds, and is wrong until `compute` is filled in.
#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

// x       [rows, cols]  dtype  input
// weight  [cols]        dtype  input
// bias    [cols]        dtype  input
// y       [rows, cols]  dtype  output

template <typename dtype>
static __global__ void compute(
    const dtype* x, const dtype* weight, const dtype* bias, dtype* y, double eps, int64_t rows, int64_t cols
) {
    const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    // TODO: compute the outputs. There is a thread for every element, in row-major order.
    if (i < rows * cols) y[i] = dtype{};
}

template <typename dtype>
static void run(
    const dtype* x, const dtype* weight, const dtype* bias, dtype* y, double eps, int64_t rows, int64_t cols,
    cudaStream_t stream
) {
    const int64_t elements = rows * cols;
    if (elements > 0)
        compute<dtype><<<unsigned((elements + 255) / 256), 256, 0, stream>>>(x, weight, bias, y, eps, rows, cols);
}

extern "C" void layernorm_float32(
    const float* x, const float* weight, const float* bias, float* y, double eps, int64_t rows, int64_t cols,
    cudaStream_t stream
) {
    run<float>(x, weight, bias, y, eps, rows, cols, stream);
}

extern "C" void layernorm_float16(
    const __half* x, const __half* weight, const __half* bias, __half* y, double eps, int64_t rows, int64_t cols,
    cudaStream_t stream
) {
    run<__half>(x, weight, bias, y, eps, rows, cols, stream);
}

extern "C" void layernorm_bfloat16(
    const __nv_bfloat16* x, const __nv_bfloat16* weight, const __nv_bfloat16* bias, __nv_bfloat16* y, double eps,
    int64_t rows, int64_t cols, cudaStream_t stream
) {
    run<__nv_bfloat16>(x, weight, bias, y, eps, rows, cols, stream);
}
