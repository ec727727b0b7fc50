#include <cstdint>

__global__ void twice(const float* x, float* y, int64_t n) {}

extern "C" void scale(const float* x, float* y, int64_t n, cudaStream_t stream) {
    twice<<<1, 4096, 0, stream>>>(x, y, n);  // more threads than a block may have
}
