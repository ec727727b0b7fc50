#include <cstdint>

__global__ void store(float* y) { *y = 1; }

extern "C" void scale(const float* x, float* y, int64_t n, cudaStream_t stream) {
    store<<<1, 1, 0, stream>>>(reinterpret_cast<float*>(8));
}
