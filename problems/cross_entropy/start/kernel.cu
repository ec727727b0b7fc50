// cross_entropy in CUDA: it builds, and is wrong until `compute` is filled in.
#include <algorithm>
#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

// logits    [rows, classes]  dtype  input
// target    [rows]           int64  input
// upstream  [rows]           dtype  input
// loss      [rows]           dtype  output
// gradient  [rows, classes]  dtype  output

template <typename dtype>
static __global__ void compute(
    const dtype* logits, const int64_t* target, const dtype* upstream, dtype* loss, dtype* gradient, int64_t rows,
    int64_t classes
) {
    const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    // TODO: compute the outputs. There is a thread for every element, in row-major order.
    if (i < rows) loss[i] = dtype{};
    if (i < rows * classes) gradient[i] = dtype{};
}

template <typename dtype>
static void run(
    const dtype* logits, const int64_t* target, const dtype* upstream, dtype* loss, dtype* gradient, int64_t rows,
    int64_t classes, cudaStream_t stream
) {
    const int64_t elements = std::max<int64_t>({rows, rows * classes});
    if (elements > 0)
        compute<dtype><<<unsigned((elements + 255) / 256), 256, 0, stream>>>(
            logits, target, upstream, loss, gradient, rows, classes
        );
}

extern "C" void cross_entropy_float32(
    const float* logits, const int64_t* target, const float* upstream, float* loss, float* gradient, int64_t rows,
    int64_t classes, cudaStream_t stream
) {
    run<float>(logits, target, upstream, loss, gradient, rows, classes, stream);
}

extern "C" void cross_entropy_float16(
    const __half* logits, const int64_t* target, const __half* upstream, __half* loss, __half* gradient,
    int64_t rows, int64_t classes, cudaStream_t stream
) {
    run<__half>(logits, target, upstream, loss, gradient, rows, classes, stream);
}

extern "C" void cross_entropy_bfloat16(
    const __nv_bfloat16* logits, const int64_t* target, const __nv_bfloat16* upstream, __nv_bfloat16* loss,
    __nv_bfloat16* gradient, int64_t rows, int64_t classes, cudaStream_t stream
) {
    run<__nv_bfloat16>(logits, target, upstream, loss, gradient, rows, classes, stream);
}
