// gather_rows_host in CUDA: it builds, and is wrong until `compute` is filled in.
#include <cstdint>
#include <cuda_runtime.h>

// table  [rows, cols]    float32  input
// ids    [picked]        int64    input
// out    [picked, cols]  float32  output

static __global__ void compute(
    const float* table, const int64_t* ids, float* out, int64_t rows, int64_t cols, int64_t picked
) {
    const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    // TODO: compute the outputs. There is a thread for every element, in row-major order.
    if (i < picked * cols) out[i] = float{};
}

extern "C" void gather_rows_host(
    const float* table, const int64_t* ids, float* out, int64_t rows, int64_t cols, int64_t picked,
    cudaStream_t stream
) {
    const int64_t elements = picked * cols;
    if (elements > 0)
        compute<<<unsigned((elements + 255) / 256), 256, 0, stream>>>(table, ids, out, rows, cols, picked);
}
