// A kernel of known duration: it waits by the device's global timer, and then copies.
//
// The timer ticks every 32 ns on Hopper. A wait of whole ticks that begins between two of them lasts up to a tick less,
// so the known duration is ns ± 32. One thread reads it: 1024 of them would queue for the timer. The launch, the copy of
// a few kilobytes and the end come on top.

#include <cstdint>
#include <cuda_runtime.h>

static __device__ int64_t now_ns() {
    int64_t time;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time));
    return time;
}

static __global__ void wait_and_copy(const float* x, float* y, int64_t n, int64_t ns) {
    if (threadIdx.x == 0) {
        const int64_t start = now_ns();
        while (now_ns() - start < ns) {
        }
    }
    __syncthreads();
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x) y[i] = x[i];
}

// y = x: [n] each, on the device, no sooner than after ns nanoseconds.
extern "C" void spin(const float* x, float* y, int64_t n, int64_t ns, cudaStream_t stream) {
    wait_and_copy<<<1, 256, 0, stream>>>(x, y, n, ns);
}
