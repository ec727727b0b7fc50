// unpack_int4 in CUDA: it builds, and is wrong until `compute` is filled in.
#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

// packed  [rows, groups * size // 2]  uint8  input
// scale   [rows, groups]              dtype  input
// zero    [rows, groups]              int8   input
// y       [rows, groups * size]       dtype  output

template <typename dtype>
static __global__ void compute(
    const uint8_t* packed, const dtype* scale, const int8_t* zero, dtype* y, int64_t rows, int64_t groups,
    int64_t size
) {
    const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    // TODO: compute the outputs. There is a thread for every element, in row-major order.
    if (i < rows * (groups * size)) y[i] = dtype{};
}

template <typename dtype>
static void run(
    const uint8_t* packed, const dtype* scale, const int8_t* zero, dtype* y, int64_t rows, int64_t groups,
    int64_t size, cudaStream_t stream
) {
    const int64_t elements = rows * (groups * size);
    if (elements > 0)
        compute<dtype><<<unsigned((elements + 255) / 256), 256, 0, stream>>>(
            packed, scale, zero, y, rows, groups, size
        );
}

extern "C" void unpack_int4_float16(
    const uint8_t* packed, const __half* scale, const int8_t* zero, __half* y, int64_t rows, int64_t groups,
    int64_t size, cudaStream_t stream
) {
    run<__half>(packed, scale, zero, y, rows, groups, size, stream);
}

extern "C" void unpack_int4_bfloat16(
    const uint8_t* packed, const __nv_bfloat16* scale, const int8_t* zero, __nv_bfloat16* y, int64_t rows,
    int64_t groups, int64_t size, cudaStream_t stream
) {
    run<__nv_bfloat16>(packed, scale, zero, y, rows, groups, size, stream);
}
