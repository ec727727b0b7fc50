// attention in CUDA: it builds, and is wrong until `compute` is filled in.
#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

// q  [batch, heads, length, size]     dtype  input
// k  [batch, kv_heads, length, size]  dtype  input
// v  [batch, kv_heads, length, size]  dtype  input
// o  [batch, heads, length, size]     dtype  output

template <typename dtype>
static __global__ void compute(
    const dtype* q, const dtype* k, const dtype* v, dtype* o, int64_t is_causal, int64_t batch, int64_t heads,
    int64_t kv_heads, int64_t length, int64_t size, int64_t causal
) {
    const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    // TODO: compute the outputs. There is a thread for every element, in row-major order.
    if (i < batch * heads * length * size) o[i] = dtype{};
}

template <typename dtype>
static void run(
    const dtype* q, const dtype* k, const dtype* v, dtype* o, int64_t is_causal, int64_t batch, int64_t heads,
    int64_t kv_heads, int64_t length, int64_t size, int64_t causal, cudaStream_t stream
) {
    const int64_t elements = batch * heads * length * size;
    if (elements > 0)
        compute<dtype><<<unsigned((elements + 255) / 256), 256, 0, stream>>>(
            q, k, v, o, is_causal, batch, heads, kv_heads, length, size, causal
        );
}

extern "C" void attention_float32(
    const float* q, const float* k, const float* v, float* o, int64_t is_causal, int64_t batch, int64_t heads,
    int64_t kv_heads, int64_t length, int64_t size, int64_t causal, cudaStream_t stream
) {
    run<float>(q, k, v, o, is_causal, batch, heads, kv_heads, length, size, causal, stream);
}

extern "C" void attention_float16(
    const __half* q, const __half* k, const __half* v, __half* o, int64_t is_causal, int64_t batch, int64_t heads,
    int64_t kv_heads, int64_t length, int64_t size, int64_t causal, cudaStream_t stream
) {
    run<__half>(q, k, v, o, is_causal, batch, heads, kv_heads, length, size, causal, stream);
}

extern "C" void attention_bfloat16(
    const __nv_bfloat16* q, const __nv_bfloat16* k, const __nv_bfloat16* v, __nv_bfloat16* o, int64_t is_causal,
    int64_t batch, int64_t heads, int64_t kv_heads, int64_t length, int64_t size, int64_t causal,
    cudaStream_t stream
) {
    run<__nv_bfloat16>(q, k, v, o, is_causal, batch, heads, kv_heads, length, size, causal, stream);
}
