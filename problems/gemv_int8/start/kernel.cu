// gemv_int8 in CUDA: it builds, and is wrong until `compute` is filled in.
#include <cstdint>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

// w      [n, k]  int8     input
// scale  [n]     float32  input
// x      [k]     float16  input
// y      [n]     float16  output

static __global__ void compute(
    const int8_t* w, const float* scale, const __half* x, __half* y, int64_t n, int64_t k
) {
    const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    // TODO: compute the outputs. There is a thread for every element, in row-major order.
    if (i < n) y[i] = __half{};
}

extern "C" void gemv_int8(
    const int8_t* w, const float* scale, const __half* x, __half* y, int64_t n, int64_t k, cudaStream_t stream
) {
    const int64_t elements = n;
    if (elements > 0)
        compute<<<unsigned((elements + 255) / 256), 256, 0, stream>>>(w, scale, x, y, n, k);
}
