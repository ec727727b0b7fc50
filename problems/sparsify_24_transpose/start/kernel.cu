// sparsify_24_transpose in CUDA: it builds, and is wrong until `compute` is filled in.
#include <algorithm>
#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

// x          [rows, cols]       dtype  input
// values     [rows, cols // 2]  dtype  output
// indices    [rows, cols // 8]  uint8  output
// values_t   [cols, rows // 2]  dtype  output
// indices_t  [cols, rows // 8]  uint8  output

template <typename dtype>
static __global__ void compute(
    const dtype* x, dtype* values, uint8_t* indices, dtype* values_t, uint8_t* indices_t, int64_t rows,
    int64_t cols
) {
    const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    // TODO: compute the outputs. There is a thread for every element, in row-major order.
    if (i < rows * (cols / 2)) values[i] = dtype{};
    if (i < rows * (cols / 8)) indices[i] = uint8_t{};
    if (i < cols * (rows / 2)) values_t[i] = dtype{};
    if (i < cols * (rows / 8)) indices_t[i] = uint8_t{};
}

template <typename dtype>
static void run(
    const dtype* x, dtype* values, uint8_t* indices, dtype* values_t, uint8_t* indices_t, int64_t rows,
    int64_t cols, cudaStream_t stream
) {
    const int64_t elements = std::max<int64_t>({rows * (cols / 2), rows * (cols / 8), cols * (rows / 2), cols * (rows / 8)});
    if (elements > 0)
        compute<dtype><<<unsigned((elements + 255) / 256), 256, 0, stream>>>(
            x, values, indices, values_t, indices_t, rows, cols
        );
}

extern "C" void sparsify_24_transpose_bfloat16(
    const __nv_bfloat16* x, __nv_bfloat16* values, uint8_t* indices, __nv_bfloat16* values_t, uint8_t* indices_t,
    int64_t rows, int64_t cols, cudaStream_t stream
) {
    run<__nv_bfloat16>(x, values, indices, values_t, indices_t, rows, cols, stream);
}

extern "C" void sparsify_24_transpose_float16(
    const __half* x, __half* values, uint8_t* indices, __half* values_t, uint8_t* indices_t, int64_t rows,
    int64_t cols, cudaStream_t stream
) {
    run<__half>(x, values, indices, values_t, indices_t, rows, cols, stream);
}

extern "C" void sparsify_24_transpose_float32(
    const float* x, float* values, uint8_t* indices, float* values_t, uint8_t* indices_t, int64_t rows,
    int64_t cols, cudaStream_t stream
) {
    run<float>(x, values, indices, values_t, indices_t, rows, cols, stream);
}
