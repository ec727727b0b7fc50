// attention_backward in C++: it builds, and is wrong until `run` is filled in.
#include <cstdint>

// dout  [batch, heads, length, size]     dtype  input
// q     [batch, heads, length, size]     dtype  input
// k     [batch, kv_heads, length, size]  dtype  input
// v     [batch, kv_heads, length, size]  dtype  input
// dq    [batch, heads, length, size]     dtype  output
// dk    [batch, kv_heads, length, size]  dtype  output
// dv    [batch, kv_heads, length, size]  dtype  output

template <typename dtype>
static void run(
    const dtype* dout, const dtype* q, const dtype* k, const dtype* v, dtype* dq, dtype* dk, dtype* dv,
    int64_t is_causal, int64_t batch, int64_t heads, int64_t kv_heads, int64_t length, int64_t size, int64_t causal
) {
    // TODO: compute the outputs. These loops visit every element, in row-major order.
    for (int64_t i = 0; i < batch * heads * length * size; ++i) dq[i] = dtype{};
    for (int64_t i = 0; i < batch * kv_heads * length * size; ++i) dk[i] = dtype{};
    for (int64_t i = 0; i < batch * kv_heads * length * size; ++i) dv[i] = dtype{};
}

extern "C" void attention_backward_float32(
    const float* dout, const float* q, const float* k, const float* v, float* dq, float* dk, float* dv,
    int64_t is_causal, int64_t batch, int64_t heads, int64_t kv_heads, int64_t length, int64_t size, int64_t causal
) {
    run<float>(dout, q, k, v, dq, dk, dv, is_causal, batch, heads, kv_heads, length, size, causal);
}

extern "C" void attention_backward_float16(
    const _Float16* dout, const _Float16* q, const _Float16* k, const _Float16* v, _Float16* dq, _Float16* dk,
    _Float16* dv, int64_t is_causal, int64_t batch, int64_t heads, int64_t kv_heads, int64_t length, int64_t size,
    int64_t causal
) {
    run<_Float16>(dout, q, k, v, dq, dk, dv, is_causal, batch, heads, kv_heads, length, size, causal);
}
