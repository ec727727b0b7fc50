// Two streams of its own, forked from the given one by an event and joined to it by events.
#include <cstdint>
#include <cuda_runtime.h>

__global__ void each(const float* x, float* y, int64_t n) {
    int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
    if (i < n) y[i] = 2 * x[i];
}

struct Sides {
    cudaStream_t stream[2];
    cudaEvent_t fork, join[2];

    Sides() {
        cudaEventCreateWithFlags(&fork, cudaEventDisableTiming);
        for (int k = 0; k < 2; ++k) {
            cudaStreamCreateWithFlags(&stream[k], cudaStreamNonBlocking);
            cudaEventCreateWithFlags(&join[k], cudaEventDisableTiming);
        }
    }
};

extern "C" void twice(const float* x, float* y, int64_t n, cudaStream_t stream) {
    static Sides sides;
    cudaEventRecord(sides.fork, stream);
    for (int k = 0; k < 2; ++k) {
        cudaStreamWaitEvent(sides.stream[k], sides.fork, 0);
        int64_t low = k * (n / 2), count = k ? n - n / 2 : n / 2;
        if (count) each<<<unsigned((count + 255) / 256), 256, 0, sides.stream[k]>>>(x + low, y + low, count);
        cudaEventRecord(sides.join[k], sides.stream[k]);
        cudaStreamWaitEvent(stream, sides.join[k], 0);
    }
}
