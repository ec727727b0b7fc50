// Layer normalization in CUDA: a block a row, which stays in registers between its sums and its output where it fits.
//
// Mean first, then the squares of what is left: the mean of the squares less the square of the mean would cancel.
#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

constexpr int THREADS = 256, KEPT = 32;  // elements that a thread keeps: rows of up to 8192 are read once

__device__ float block_sum(float value) {
    __shared__ float warps[THREADS / 32];
    for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(~0u, value, step);
    __syncthreads();  // the last sum has been read by all
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = value;
    __syncthreads();
    float total = 0;
    for (int i = 0; i < THREADS / 32; ++i) total += warps[i];
    return total;
}

template <typename T>
__global__ void row_kernel(const T* x, const T* weight, const T* bias, T* y, float eps, int64_t cols) {
    const T* from = x + blockIdx.x * cols;
    T* to = y + blockIdx.x * cols;
    float kept[KEPT];
    float sum = 0;
#pragma unroll
    for (int i = 0; i < KEPT; ++i) {
        const int64_t column = i * THREADS + threadIdx.x;
        kept[i] = column < cols ? float(from[column]) : 0.0f;
        sum += kept[i];
    }
    for (int64_t column = KEPT * THREADS + threadIdx.x; column < cols; column += THREADS) sum += float(from[column]);
    const float mean = block_sum(sum) / cols;
    float squares = 0;
#pragma unroll
    for (int i = 0; i < KEPT; ++i) {
        const float centred = i * THREADS + threadIdx.x < cols ? kept[i] - mean : 0.0f;
        squares += centred * centred;
    }
    for (int64_t column = KEPT * THREADS + threadIdx.x; column < cols; column += THREADS) {
        const float centred = float(from[column]) - mean;
        squares += centred * centred;
    }
    const float scale = rsqrtf(block_sum(squares) / cols + eps);
#pragma unroll
    for (int i = 0; i < KEPT; ++i) {
        const int64_t column = i * THREADS + threadIdx.x;
        if (column < cols) to[column] = T((kept[i] - mean) * scale * float(weight[column]) + float(bias[column]));
    }
    for (int64_t column = KEPT * THREADS + threadIdx.x; column < cols; column += THREADS)
        to[column] = T((float(from[column]) - mean) * scale * float(weight[column]) + float(bias[column]));
}

#define ENTRY(NAME, TYPE)                                                                                              \
    extern "C" void NAME(const TYPE* x, const TYPE* weight, const TYPE* bias, TYPE* y, double eps, int64_t rows,       \
                         int64_t cols, cudaStream_t stream) {                                                          \
        row_kernel<<<unsigned(rows), THREADS, 0, stream>>>(x, weight, bias, y, float(eps), cols);                      \
    }

ENTRY(layernorm_float32, float)
ENTRY(layernorm_float16, __half)
ENTRY(layernorm_bfloat16, __nv_bfloat16)
