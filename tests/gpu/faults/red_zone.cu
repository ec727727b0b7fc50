#include <cstdint>

__global__ void twice(const float* x, float* y, int64_t n) {
    int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
    if (i < n) y[i] = 2 * x[i];
    if (i == n) reinterpret_cast<uint32_t*>(y)[i] ^= 0xffffffffu;  // one too many: every byte, whatever the poison is
}

extern "C" void scale(const float* x, float* y, int64_t n, cudaStream_t stream) {
    twice<<<unsigned(n / 256 + 1), 256, 0, stream>>>(x, y, n);
}
