// attention in C++: it builds, and is wrong until `run` is filled in.
#include <cstdint>

// q  [batch, heads, length, size]     dtype  input
// k  [batch, kv_heads, length, size]  dtype  input
// v  [batch, kv_heads, length, size]  dtype  input
// o  [batch, heads, length, size]     dtype  output

template <typename dtype>
static void run(
    const dtype* q, const dtype* k, const dtype* v, dtype* o, int64_t is_causal, int64_t batch, int64_t heads,
    int64_t kv_heads, int64_t length, int64_t size, int64_t causal
) {
    // TODO: compute the outputs. These loops visit every element, in row-major order.
    for (int64_t i = 0; i < batch * heads * length * size; ++i) o[i] = dtype{};
}

extern "C" void attention_float32(
    const float* q, const float* k, const float* v, float* o, int64_t is_causal, int64_t batch, int64_t heads,
    int64_t kv_heads, int64_t length, int64_t size, int64_t causal
) {
    run<float>(q, k, v, o, is_causal, batch, heads, kv_heads, length, size, causal);
}

extern "C" void attention_float16(
    const _Float16* q, const _Float16* k, const _Float16* v, _Float16* o, int64_t is_causal, int64_t batch,
    int64_t heads, int64_t kv_heads, int64_t length, int64_t size, int64_t causal
) {
    run<_Float16>(q, k, v, o, is_causal, batch, heads, kv_heads, length, size, causal);
}
