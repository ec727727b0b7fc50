// Four floats at a time, and a second kernel for the last few.
#include <cstdint>
#include <cuda_runtime.h>

__global__ void fours(const float4* __restrict__ x, float4* __restrict__ y, int64_t n) {
    const int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
    if (i >= n) return;
    float4 v = __ldg(x + i);
    v.x *= 2, v.y *= 2, v.z *= 2, v.w *= 2;
    __stcs(y + i, v);
}

__global__ void tail(const float* x, float* y, int64_t first, int64_t n) {
    if (first + threadIdx.x < n) y[first + threadIdx.x] = 2 * x[first + threadIdx.x];
}

extern "C" void twice(const float* x, float* y, int64_t n, cudaStream_t stream) {
    const int64_t whole = n / 4;
    if (whole)
        fours<<<unsigned((whole + 255) / 256), 256, 0, stream>>>((const float4*)x, (float4*)y, whole);
    if (4 * whole < n) tail<<<1, 4, 0, stream>>>(x, y, 4 * whole, n);
}
