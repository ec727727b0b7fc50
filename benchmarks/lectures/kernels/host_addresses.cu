// What does not work in the lecture: the kernel is given the address of a list in the host's memory.

#include <cstdint>
#include <cuda_runtime.h>

static __global__ void first_of_each(float* const* params, int64_t count) {
    for (int64_t i = threadIdx.x; i < count; i += blockDim.x) params[i][0] = 0;
}

extern "C" void adam_multi_tensor(float* const* params, const float* const*, float* const*, float* const*, double,
                                  double, double, double, double, int64_t, int64_t count, int64_t, int64_t,
                                  cudaStream_t stream) {
    first_of_each<<<1, 128, 0, stream>>>(params, count);
}
