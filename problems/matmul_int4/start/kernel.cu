// matmul_int4 in CUDA: it builds, and is wrong until `compute` is filled in.
#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

// x       [m, k]          dtype  input
// packed  [n, k // 2]     uint8  input
// scale   [n, k // size]  dtype  input
// y       [m, n]          dtype  output

template <typename dtype>
static __global__ void compute(
    const dtype* x, const uint8_t* packed, const dtype* scale, dtype* y, int64_t m, int64_t n, int64_t k,
    int64_t size
) {
    const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    // TODO: compute the outputs. There is a thread for every element, in row-major order.
    if (i < m * n) y[i] = dtype{};
}

template <typename dtype>
static void run(
    const dtype* x, const uint8_t* packed, const dtype* scale, dtype* y, int64_t m, int64_t n, int64_t k,
    int64_t size, cudaStream_t stream
) {
    const int64_t elements = m * n;
    if (elements > 0)
        compute<dtype><<<unsigned((elements + 255) / 256), 256, 0, stream>>>(x, packed, scale, y, m, n, k, size);
}

extern "C" void matmul_int4_float16(
    const __half* x, const uint8_t* packed, const __half* scale, __half* y, int64_t m, int64_t n, int64_t k,
    int64_t size, cudaStream_t stream
) {
    run<__half>(x, packed, scale, y, m, n, k, size, stream);
}

extern "C" void matmul_int4_bfloat16(
    const __nv_bfloat16* x, const uint8_t* packed, const __nv_bfloat16* scale, __nv_bfloat16* y, int64_t m,
    int64_t n, int64_t k, int64_t size, cudaStream_t stream
) {
    run<__nv_bfloat16>(x, packed, scale, y, m, n, k, size, stream);
}
