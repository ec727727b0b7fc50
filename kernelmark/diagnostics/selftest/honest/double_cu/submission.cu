// A thread an element.
#include <cstdint>

__global__ void each(const float* x, float* y, int64_t n) {
    int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
    if (i < n) y[i] = 2 * x[i];
}

extern "C" void twice(const float* x, float* y, int64_t n, cudaStream_t stream) {
    each<<<unsigned((n + 255) / 256), 256, 0, stream>>>(x, y, n);
}
