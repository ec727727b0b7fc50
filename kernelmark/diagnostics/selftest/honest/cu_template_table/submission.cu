// Templates, tables in constant and device memory, and inline PTX.
#include <cstdint>
#include <cuda_runtime.h>

__constant__ float FACTORS[] = {1.0f, 2.0f, 4.0f};
__device__ const int CHOICE[4] = {1, 1, 1, 1};

template <typename T>
struct Streaming {
    static __device__ T load(const T* at) { return *at; }
};

template <>
struct Streaming<float> {
    static __device__ float load(const float* at) {
        float value;
        asm volatile("ld.global.nc.L1::no_allocate.f32 %0, [%1];" : "=f"(value) : "l"(at));
        return value;
    }
};

template <typename T, int EACH, typename Load = Streaming<T>>
__global__ void scale(const T* x, T* y, int64_t n) {
    const int64_t first = blockIdx.x * int64_t(blockDim.x) * EACH + threadIdx.x;
#pragma unroll
    for (int k = 0; k < EACH; ++k) {
        const int64_t i = first + int64_t(k) * blockDim.x;
        if (i < n) y[i] = Load::load(x + i) * FACTORS[CHOICE[i % 4]];
    }
}

extern "C" void twice(const float* x, float* y, int64_t n, cudaStream_t stream) {
    constexpr int EACH = 4, THREADS = 256;
    scale<float, EACH><<<unsigned((n + EACH * THREADS - 1) / (EACH * THREADS)), THREADS, 0, stream>>>(x, y, n);
}
