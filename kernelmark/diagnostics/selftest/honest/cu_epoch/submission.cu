// Blocks wait for flags that other blocks set to the number of the call. The flags are in a __device__ variable, and the
// number in memory of cudaMalloc: a replay must find both as the recorded call did.
#include <cstdint>
#include <cuda_runtime.h>

constexpr int PARTS = 32;
__device__ unsigned flags[PARTS];

__global__ void each(const float* x, float* y, int64_t n, float* between, const unsigned* epoch) {
    const unsigned now = *epoch + 1;
    const int part = blockIdx.x % PARTS;
    const int64_t size = (n + PARTS - 1) / PARTS, from = part * size, to = from + size < n ? from + size : n;
    if (blockIdx.x < PARTS) {
        if (threadIdx.x == 0)
            while (atomicAdd(&flags[part], 0u) != now) __nanosleep(100);
        __syncthreads();
        for (int64_t i = from + threadIdx.x; i < to; i += blockDim.x) y[i] = __ldcg(between + i);
    } else {
        for (int64_t i = from + threadIdx.x; i < to; i += blockDim.x) between[i] = 2 * x[i];
        __threadfence();
        __syncthreads();
        if (threadIdx.x == 0) atomicExch(&flags[part], now);
    }
}

__global__ void count(unsigned* epoch) { *epoch += 1; }

extern "C" void twice(const float* x, float* y, int64_t n, cudaStream_t stream) {
    static float* between = nullptr;
    static unsigned* epoch = nullptr;
    static int64_t room = 0;
    if (!epoch) cudaMalloc(&epoch, sizeof *epoch), cudaMemset(epoch, 0, sizeof *epoch);
    if (room < n) cudaFree(between), cudaMalloc(&between, sizeof(float) * n), room = n;
    each<<<2 * PARTS, 256, 0, stream>>>(x, y, n, between, epoch);
    count<<<1, 1, 0, stream>>>(epoch);
}
