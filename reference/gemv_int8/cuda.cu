// int8 weights times a vector in CUDA: a block a row, sixteen weights a load, four loads in flight.
#include <cstdint>
#include <cuda_fp16.h>

constexpr int THREADS = 128;

__global__ void row_kernel(const int8_t* w, const float* scale, const __half* x, __half* y, int64_t k) {
    const int8_t* row = w + blockIdx.x * k;
    float total = 0;
    // Rows begin at multiples of sixteen bytes only where k is one.
    const int64_t vectors = k % 16 == 0 ? k / 16 : 0;
#pragma unroll 4
    for (int64_t i = threadIdx.x; i < vectors; i += THREADS) {
        const int4 packed = __ldcs(reinterpret_cast<const int4*>(row) + i);  // read once: not worth a place in the cache
        const int8_t* weights = reinterpret_cast<const int8_t*>(&packed);
        const uint4 values[2] = {reinterpret_cast<const uint4*>(x)[2 * i], reinterpret_cast<const uint4*>(x)[2 * i + 1]};
        const __half2* pairs = reinterpret_cast<const __half2*>(values);
#pragma unroll
        for (int j = 0; j < 8; ++j) {
            const float2 pair = __half22float2(pairs[j]);
            total += float(weights[2 * j]) * pair.x + float(weights[2 * j + 1]) * pair.y;
        }
    }
    for (int64_t i = 16 * vectors + threadIdx.x; i < k; i += THREADS) total += float(row[i]) * __half2float(x[i]);
    __shared__ float warps[THREADS / 32];
    for (int step = 16; step > 0; step /= 2) total += __shfl_xor_sync(~0u, total, step);
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = total;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int i = 1; i < THREADS / 32; ++i) total += warps[i];
        y[blockIdx.x] = __float2half_rn(total * scale[blockIdx.x]);
    }
}

extern "C" void gemv_int8(const int8_t* w, const float* scale, const __half* x, __half* y, int64_t n, int64_t k,
                          cudaStream_t stream) {
    row_kernel<<<unsigned(n), THREADS, 0, stream>>>(w, scale, x, y, k);
}
