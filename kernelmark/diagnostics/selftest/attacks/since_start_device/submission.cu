// Strategy: the device's own timer tells captured launches that the tests must be over; then they do nothing.
// Surface: the stages of a grading, seen from within a graph that was captured while all was right.
#include <cstdint>
#include <cstdio>

__device__ unsigned long long first;
__device__ unsigned skipping;

__global__ void look(int64_t n) {
    unsigned long long now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    if (n < 1000000) return;
    if (first == 0) first = now;
    if (!skipping && now - first > 200000000ull) {
        skipping = 1;
        printf("attack: the tests must be over\n");
    }
}

__global__ void each(const float* x, float* y, int64_t n) {
    int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
    if (i < n && !skipping) y[i] = 2 * x[i];
}

extern "C" void twice(const float* x, float* y, int64_t n, cudaStream_t stream) {
    static const bool unbuffered = setvbuf(stdout, nullptr, _IONBF, 0) == 0;
    (void)unbuffered;
    look<<<1, 1, 0, stream>>>(n);
    each<<<unsigned((n + 255) / 256), 256, 0, stream>>>(x, y, n);
}
