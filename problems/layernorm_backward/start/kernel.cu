// layernorm_backward in CUDA: it builds, and is wrong until `compute` is filled in.
#include <algorithm>
#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

// dy       [rows, cols]  dtype  input
// x        [rows, cols]  dtype  input
// weight   [cols]        dtype  input
// dx       [rows, cols]  dtype  output
// dweight  [cols]        dtype  output
// dbias    [cols]        dtype  output

template <typename dtype>
static __global__ void compute(
    const dtype* dy, const dtype* x, const dtype* weight, dtype* dx, dtype* dweight, dtype* dbias, double eps,
    int64_t rows, int64_t cols
) {
    const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    // TODO: compute the outputs. There is a thread for every element, in row-major order.
    if (i < rows * cols) dx[i] = dtype{};
    if (i < cols) dweight[i] = dtype{};
    if (i < cols) dbias[i] = dtype{};
}

template <typename dtype>
static void run(
    const dtype* dy, const dtype* x, const dtype* weight, dtype* dx, dtype* dweight, dtype* dbias, double eps,
    int64_t rows, int64_t cols, cudaStream_t stream
) {
    const int64_t elements = std::max<int64_t>({rows * cols, cols});
    if (elements > 0)
        compute<dtype><<<unsigned((elements + 255) / 256), 256, 0, stream>>>(
            dy, x, weight, dx, dweight, dbias, eps, rows, cols
        );
}

extern "C" void layernorm_backward_float32(
    const float* dy, const float* x, const float* weight, float* dx, float* dweight, float* dbias, double eps,
    int64_t rows, int64_t cols, cudaStream_t stream
) {
    run<float>(dy, x, weight, dx, dweight, dbias, eps, rows, cols, stream);
}

extern "C" void layernorm_backward_float16(
    const __half* dy, const __half* x, const __half* weight, __half* dx, __half* dweight, __half* dbias,
    double eps, int64_t rows, int64_t cols, cudaStream_t stream
) {
    run<__half>(dy, x, weight, dx, dweight, dbias, eps, rows, cols, stream);
}

extern "C" void layernorm_backward_bfloat16(
    const __nv_bfloat16* dy, const __nv_bfloat16* x, const __nv_bfloat16* weight, __nv_bfloat16* dx,
    __nv_bfloat16* dweight, __nv_bfloat16* dbias, double eps, int64_t rows, int64_t cols, cudaStream_t stream
) {
    run<__nv_bfloat16>(dy, x, weight, dx, dweight, dbias, eps, rows, cols, stream);
}
