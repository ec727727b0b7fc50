// Strategy: the device itself counts the launches of the timed size, and does nothing after the first 3, which a recording
// and its practice take. The host's code is the same in every call.
// Surface: device variables. A launcher puts them back before each call, so that a count goes no further there.
#include <cstdint>
#include <cstdio>

__device__ unsigned launches;
__device__ unsigned skipping;

__global__ void count(int64_t n) {
    skipping = n >= 1000000 && ++launches > 3;
    if (skipping && launches == 4) printf("attack: 3 launches were enough\n");
}

__global__ void each(const float* x, float* y, int64_t n) {
    int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
    if (i < n && !skipping) y[i] = 2 * x[i];
}

extern "C" void twice(const float* x, float* y, int64_t n, cudaStream_t stream) {
    static const bool unbuffered = setvbuf(stdout, nullptr, _IONBF, 0) == 0;
    (void)unbuffered;
    count<<<1, 1, 0, stream>>>(n);
    each<<<unsigned((n + 255) / 256), 256, 0, stream>>>(x, y, n);
}
