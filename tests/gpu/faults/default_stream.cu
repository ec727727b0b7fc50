// Ignores the stream that it is given: the work lands on the default stream, which nvcc is told to be the thread's own.
#include <cstdint>

__global__ void twice(const float* x, float* y, int64_t n) {
    int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
    if (i < n) y[i] = 2 * x[i];
}

extern "C" void scale(const float* x, float* y, int64_t n, cudaStream_t) {
    twice<<<unsigned((n + 255) / 256), 256>>>(x, y, n);
}
