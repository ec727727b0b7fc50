#include <cstdint>

extern "C" void scale(const float* x, float* y, int64_t n, cudaStream_t stream) {
    undeclared<<<1, 1, 0, stream>>>(x, y, n);
}
