// int8 weights times a vector in CUDA: a block two rows, sixteen weights of each a load.
#include <cstdint>
#include <cuda_fp16.h>

constexpr int THREADS = 128, ROWS = 2;

// Byte `i` of `flipped` as a float, where the sign bits of its bytes have been flipped.
//
// The byte becomes the low end of the mantissa of 2²³: one permutation and one subtraction, at the full rate of the
// float32 units. A conversion from int8 runs at an eighth of it, and would take longer than the memory.
__device__ float number(unsigned flipped, int i) {
    return __uint_as_float(__byte_perm(flipped, 0x4B000000, 0x7650 + i)) - 8388736.0f;
}

__device__ float dot(unsigned weights, const __half2* pairs, float total) {
    const unsigned flipped = weights ^ 0x80808080;
    const float2 first = __half22float2(pairs[0]), second = __half22float2(pairs[1]);
    total += number(flipped, 0) * first.x;
    total += number(flipped, 1) * first.y;
    total += number(flipped, 2) * second.x;
    return total + number(flipped, 3) * second.y;
}

__global__ void rows_kernel(const int8_t* w, const float* scale, const __half* x, __half* y, int64_t n, int64_t k) {
    const int64_t first = blockIdx.x * int64_t(ROWS);
    const int8_t* rows[ROWS];
    for (int r = 0; r < ROWS; ++r) rows[r] = w + min(first + r, n - 1) * k;
    float totals[ROWS] = {};
    // Rows begin at multiples of sixteen bytes only where k is one.
    const int64_t vectors = k % 16 == 0 ? k / 16 : 0;
#pragma unroll 4
    for (int64_t i = threadIdx.x; i < vectors; i += THREADS) {
        uint4 weights[ROWS];
        for (int r = 0; r < ROWS; ++r) weights[r] = __ldcs(reinterpret_cast<const uint4*>(rows[r]) + i);  // read once
        const uint4 values[2] = {reinterpret_cast<const uint4*>(x)[2 * i], reinterpret_cast<const uint4*>(x)[2 * i + 1]};
        const __half2* pairs = reinterpret_cast<const __half2*>(values);
        for (int r = 0; r < ROWS; ++r) {
            totals[r] = dot(weights[r].x, pairs, totals[r]);
            totals[r] = dot(weights[r].y, pairs + 2, totals[r]);
            totals[r] = dot(weights[r].z, pairs + 4, totals[r]);
            totals[r] = dot(weights[r].w, pairs + 6, totals[r]);
        }
    }
    for (int64_t i = 16 * vectors + threadIdx.x; i < k; i += THREADS)
        for (int r = 0; r < ROWS; ++r) totals[r] += float(rows[r][i]) * __half2float(x[i]);
    __shared__ float warps[ROWS][THREADS / 32];
    for (int r = 0; r < ROWS; ++r) {
        for (int step = 16; step > 0; step /= 2) totals[r] += __shfl_xor_sync(~0u, totals[r], step);
        if (threadIdx.x % 32 == 0) warps[r][threadIdx.x / 32] = totals[r];
    }
    __syncthreads();
    if (threadIdx.x < ROWS && first + threadIdx.x < n) {
        float total = 0;
        for (int i = 0; i < THREADS / 32; ++i) total += warps[threadIdx.x][i];
        y[first + threadIdx.x] = __float2half_rn(total * scale[first + threadIdx.x]);
    }
}

extern "C" void gemv_int8(const int8_t* w, const float* scale, const __half* x, __half* y, int64_t n, int64_t k,
                          cudaStream_t stream) {
    rows_kernel<<<unsigned((n + ROWS - 1) / ROWS), THREADS, 0, stream>>>(w, scale, x, y, n, k);
}
