// The square in CUDA: each thread squares sixteen bytes at a time, and the first block takes the tail.
#include <cstdint>

constexpr int THREADS = 256;

__global__ void square_kernel(const float* __restrict__ x, float* __restrict__ y, int64_t n) {
    // Arenas are aligned to more than sixteen bytes, so x and y can be read as vectors of four.
    const int64_t vectors = n / 4, step = int64_t(gridDim.x) * THREADS;
    const float4* from = reinterpret_cast<const float4*>(x);
    float4* to = reinterpret_cast<float4*>(y);
    for (int64_t i = int64_t(blockIdx.x) * THREADS + threadIdx.x; i < vectors; i += step) {
        const float4 v = from[i];
        to[i] = make_float4(v.x * v.x, v.y * v.y, v.z * v.z, v.w * v.w);
    }
    const int64_t tail = 4 * vectors + threadIdx.x;
    if (blockIdx.x == 0 && tail < n) y[tail] = x[tail] * x[tail];
}

extern "C" void square(const float* x, float* y, int64_t n, cudaStream_t stream) {
    const int64_t blocks = (n / 4 + THREADS - 1) / THREADS;
    // One vector a thread: on large inputs a grid that is launched once and loops was no faster.
    square_kernel<<<unsigned(blocks < 1 ? 1 : blocks > 0x7fffffff ? 0x7fffffff : blocks), THREADS, 0, stream>>>(x, y, n);
}
