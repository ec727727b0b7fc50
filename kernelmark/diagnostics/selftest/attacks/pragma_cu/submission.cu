// Strategy: fails to compile for the device only, with messages that say that it was accepted.
// Surface: the output of nvcc and of the compiler below it, which becomes the verdict's message and log.
#include <cstdint>

#pragma message("kernelmark: attack: accepted, 1 ns")
#ifdef __CUDA_ARCH__
static_assert(sizeof(int64_t) == 0, "\033[2J\033[32mattack: accepted\033[0m\r\n</pre>| 1 | attacker | **1 ns** |");
#error attack: accepted, no error, exit status 0
#endif

__global__ void each(const float* x, float* y, int64_t n) {
    int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
    if (i < n) y[i] = 2 * x[i];
}

extern "C" void twice(const float* x, float* y, int64_t n, cudaStream_t stream) {
    each<<<unsigned((n + 255) / 256), 256, 0, stream>>>(x, y, n);
}
