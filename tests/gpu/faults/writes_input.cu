#include <cstdint>

__global__ void twice(float* x, float* y, int64_t n) {
    int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
    if (i < n) { x[i] *= 2; y[i] = x[i]; }
}

extern "C" void scale(const float* x, float* y, int64_t n, cudaStream_t stream) {
    twice<<<unsigned((n + 255) / 256), 256, 0, stream>>>(const_cast<float*>(x), y, n);
}
