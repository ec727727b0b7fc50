// pack_int4 in CUDA: it builds, and is wrong until `compute` is filled in.
#include <cstdint>
#include <cuda_runtime.h>

// x       [rows, cols]               int8   input
// packed  [rows, ceil_div(cols, 2)]  uint8  output

static __global__ void compute(const int8_t* x, uint8_t* packed, int64_t rows, int64_t cols) {
    const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    // TODO: compute the outputs. There is a thread for every element, in row-major order.
    if (i < rows * ((cols + 2 - 1) / 2)) packed[i] = uint8_t{};
}

extern "C" void pack_int4(const int8_t* x, uint8_t* packed, int64_t rows, int64_t cols, cudaStream_t stream) {
    const int64_t elements = rows * ((cols + 2 - 1) / 2);
    if (elements > 0)
        compute<<<unsigned((elements + 255) / 256), 256, 0, stream>>>(x, packed, rows, cols);
}
