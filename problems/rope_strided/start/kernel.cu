// rope_strided in CUDA: it builds, and is wrong until `compute` is filled in.
#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_runtime.h>

// q          [tokens, heads, dim] strides [3 * heads * dim, dim, 1]  dtype  inout
// positions  [tokens]                                                int32  input
// table      [1024, dim]                                             dtype  input

template <typename dtype>
static __global__ void compute(
    dtype* q, const int32_t* positions, const dtype* table, int64_t tokens, int64_t heads, int64_t dim
) {
    const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    // TODO: compute the outputs. There is a thread for every element, in row-major order.
    if (i < tokens * heads * dim) {
        const int64_t place = i / (heads * dim) * (3 * heads * dim) + i / dim % heads * dim + i % dim;
        q[place] = q[place];
    }
}

template <typename dtype>
static void run(
    dtype* q, const int32_t* positions, const dtype* table, int64_t tokens, int64_t heads, int64_t dim,
    cudaStream_t stream
) {
    const int64_t elements = tokens * heads * dim;
    if (elements > 0)
        compute<dtype><<<unsigned((elements + 255) / 256), 256, 0, stream>>>(q, positions, table, tokens, heads, dim);
}

extern "C" void rope_strided_float32(
    float* q, const int32_t* positions, const float* table, int64_t tokens, int64_t heads, int64_t dim,
    cudaStream_t stream
) {
    run<float>(q, positions, table, tokens, heads, dim, stream);
}

extern "C" void rope_strided_bfloat16(
    __nv_bfloat16* q, const int32_t* positions, const __nv_bfloat16* table, int64_t tokens, int64_t heads,
    int64_t dim, cudaStream_t stream
) {
    run<__nv_bfloat16>(q, positions, table, tokens, heads, dim, stream);
}
