// matmul_block_sparse in CUDA: it builds, and is wrong until `compute` is filled in.
#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

// x        [m, k]                             dtype  input
// values   [n // block, slots, block, block]  dtype  input
// indices  [n // block, slots]                int32  input
// y        [m, n]                             dtype  output

template <typename dtype>
static __global__ void compute(
    const dtype* x, const dtype* values, const int32_t* indices, dtype* y, int64_t m, int64_t n, int64_t k,
    int64_t block, int64_t slots
) {
    const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    // TODO: compute the outputs. There is a thread for every element, in row-major order.
    if (i < m * n) y[i] = dtype{};
}

template <typename dtype>
static void run(
    const dtype* x, const dtype* values, const int32_t* indices, dtype* y, int64_t m, int64_t n, int64_t k,
    int64_t block, int64_t slots, cudaStream_t stream
) {
    const int64_t elements = m * n;
    if (elements > 0)
        compute<dtype><<<unsigned((elements + 255) / 256), 256, 0, stream>>>(
            x, values, indices, y, m, n, k, block, slots
        );
}

extern "C" void matmul_block_sparse_float16(
    const __half* x, const __half* values, const int32_t* indices, __half* y, int64_t m, int64_t n, int64_t k,
    int64_t block, int64_t slots, cudaStream_t stream
) {
    run<__half>(x, values, indices, y, m, n, k, block, slots, stream);
}

extern "C" void matmul_block_sparse_bfloat16(
    const __nv_bfloat16* x, const __nv_bfloat16* values, const int32_t* indices, __nv_bfloat16* y, int64_t m,
    int64_t n, int64_t k, int64_t block, int64_t slots, cudaStream_t stream
) {
    run<__nv_bfloat16>(x, values, indices, y, m, n, k, block, slots, stream);
}
