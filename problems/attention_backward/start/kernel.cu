// attention_backward in CUDA: it builds, and is wrong until `compute` is filled in.
#include <algorithm>
#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

// dout  [batch, heads, length, size]     dtype  input
// q     [batch, heads, length, size]     dtype  input
// k     [batch, kv_heads, length, size]  dtype  input
// v     [batch, kv_heads, length, size]  dtype  input
// dq    [batch, heads, length, size]     dtype  output
// dk    [batch, kv_heads, length, size]  dtype  output
// dv    [batch, kv_heads, length, size]  dtype  output

template <typename dtype>
static __global__ void compute(
    const dtype* dout, const dtype* q, const dtype* k, const dtype* v, dtype* dq, dtype* dk, dtype* dv,
    int64_t is_causal, int64_t batch, int64_t heads, int64_t kv_heads, int64_t length, int64_t size, int64_t causal
) {
    const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    // TODO: compute the outputs. There is a thread for every element, in row-major order.
    if (i < batch * heads * length * size) dq[i] = dtype{};
    if (i < batch * kv_heads * length * size) dk[i] = dtype{};
    if (i < batch * kv_heads * length * size) dv[i] = dtype{};
}

template <typename dtype>
static void run(
    const dtype* dout, const dtype* q, const dtype* k, const dtype* v, dtype* dq, dtype* dk, dtype* dv,
    int64_t is_causal, int64_t batch, int64_t heads, int64_t kv_heads, int64_t length, int64_t size,
    int64_t causal, cudaStream_t stream
) {
    const int64_t elements = std::max<int64_t>({batch * heads * length * size, batch * kv_heads * length * size});
    if (elements > 0)
        compute<dtype><<<unsigned((elements + 255) / 256), 256, 0, stream>>>(
            dout, q, k, v, dq, dk, dv, is_causal, batch, heads, kv_heads, length, size, causal
        );
}

extern "C" void attention_backward_float32(
    const float* dout, const float* q, const float* k, const float* v, float* dq, float* dk, float* dv,
    int64_t is_causal, int64_t batch, int64_t heads, int64_t kv_heads, int64_t length, int64_t size,
    int64_t causal, cudaStream_t stream
) {
    run<float>(dout, q, k, v, dq, dk, dv, is_causal, batch, heads, kv_heads, length, size, causal, stream);
}

extern "C" void attention_backward_float16(
    const __half* dout, const __half* q, const __half* k, const __half* v, __half* dq, __half* dk, __half* dv,
    int64_t is_causal, int64_t batch, int64_t heads, int64_t kv_heads, int64_t length, int64_t size,
    int64_t causal, cudaStream_t stream
) {
    run<__half>(dout, q, k, v, dq, dk, dv, is_causal, batch, heads, kv_heads, length, size, causal, stream);
}

extern "C" void attention_backward_bfloat16(
    const __nv_bfloat16* dout, const __nv_bfloat16* q, const __nv_bfloat16* k, const __nv_bfloat16* v,
    __nv_bfloat16* dq, __nv_bfloat16* dk, __nv_bfloat16* dv, int64_t is_causal, int64_t batch, int64_t heads,
    int64_t kv_heads, int64_t length, int64_t size, int64_t causal, cudaStream_t stream
) {
    run<__nv_bfloat16>(dout, q, k, v, dq, dk, dv, is_causal, batch, heads, kv_heads, length, size, causal, stream);
}
