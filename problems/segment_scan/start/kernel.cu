// segment_scan in CUDA: it builds, and is wrong until `compute` is filled in.
#include <cstdint>
#include <cuda_runtime.h>

// x        [n]             float32  input
// offsets  [segments + 1]  int32    input
// y        [n]             float32  output

static __global__ void compute(const float* x, const int32_t* offsets, float* y, int64_t n, int64_t segments) {
    const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    // TODO: compute the outputs. There is a thread for every element, in row-major order.
    if (i < n) y[i] = float{};
}

extern "C" void segment_scan(
    const float* x, const int32_t* offsets, float* y, int64_t n, int64_t segments, cudaStream_t stream
) {
    const int64_t elements = n;
    if (elements > 0)
        compute<<<unsigned((elements + 255) / 256), 256, 0, stream>>>(x, offsets, y, n, segments);
}
