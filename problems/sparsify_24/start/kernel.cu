// sparsify_24 in CUDA: it builds, and is wrong until `compute` is filled in.
#include <algorithm>
#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

// x        [rows, cols]                                                               dtype  input
// values   [(1 - flip) * rows + flip * cols, ((1 - flip) * cols + flip * rows) // 2]  dtype  output
// indices  [(1 - flip) * rows + flip * cols, ((1 - flip) * cols + flip * rows) // 8]  uint8  output

template <typename dtype>
static __global__ void compute(
    const dtype* x, dtype* values, uint8_t* indices, int64_t transposed, int64_t rows, int64_t cols, int64_t flip
) {
    const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    // TODO: compute the outputs. There is a thread for every element, in row-major order.
    if (i < ((1 - flip) * rows + flip * cols) * (((1 - flip) * cols + flip * rows) / 2)) values[i] = dtype{};
    if (i < ((1 - flip) * rows + flip * cols) * (((1 - flip) * cols + flip * rows) / 8)) indices[i] = uint8_t{};
}

template <typename dtype>
static void run(
    const dtype* x, dtype* values, uint8_t* indices, int64_t transposed, int64_t rows, int64_t cols, int64_t flip,
    cudaStream_t stream
) {
    const int64_t elements = std::max<int64_t>({((1 - flip) * rows + flip * cols) * (((1 - flip) * cols + flip * rows) / 2), ((1 - flip) * rows + flip * cols) * (((1 - flip) * cols + flip * rows) / 8)});
    if (elements > 0)
        compute<dtype><<<unsigned((elements + 255) / 256), 256, 0, stream>>>(
            x, values, indices, transposed, rows, cols, flip
        );
}

extern "C" void sparsify_24_bfloat16(
    const __nv_bfloat16* x, __nv_bfloat16* values, uint8_t* indices, int64_t transposed, int64_t rows,
    int64_t cols, int64_t flip, cudaStream_t stream
) {
    run<__nv_bfloat16>(x, values, indices, transposed, rows, cols, flip, stream);
}

extern "C" void sparsify_24_float16(
    const __half* x, __half* values, uint8_t* indices, int64_t transposed, int64_t rows, int64_t cols,
    int64_t flip, cudaStream_t stream
) {
    run<__half>(x, values, indices, transposed, rows, cols, flip, stream);
}

extern "C" void sparsify_24_float32(
    const float* x, float* values, uint8_t* indices, int64_t transposed, int64_t rows, int64_t cols, int64_t flip,
    cudaStream_t stream
) {
    run<float>(x, values, indices, transposed, rows, cols, flip, stream);
}
