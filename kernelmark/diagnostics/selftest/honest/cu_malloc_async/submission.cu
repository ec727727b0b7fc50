// Scratch from the stream's memory pool, taken and given back in every call.
#include <cstdint>
#include <cuda_runtime.h>

__global__ void copy(const float* from, float* to, int64_t n) {
    for (int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x; i < n; i += int64_t(gridDim.x) * blockDim.x)
        to[i] = from[i];
}

__global__ void sum(const float* a, const float* b, float* to, int64_t n) {
    for (int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x; i < n; i += int64_t(gridDim.x) * blockDim.x)
        to[i] = a[i] + b[i];
}

extern "C" void twice(const float* x, float* y, int64_t n, cudaStream_t stream) {
    float* scratch = nullptr;
    if (cudaMallocAsync(&scratch, n * sizeof(float), stream) != cudaSuccess) return;
    copy<<<512, 256, 0, stream>>>(x, scratch, n);
    sum<<<512, 256, 0, stream>>>(x, scratch, y, n);
    cudaFreeAsync(scratch, stream);
}
