// paged_attention in C++: it builds, and is wrong until `run` is filled in.
#include <cstdint>

// q        [batch, heads, size]           dtype  input
// k_pages  [pages, page, kv_heads, size]  dtype  input
// v_pages  [pages, page, kv_heads, size]  dtype  input
// table    [batch, most_pages]            int32  input
// lengths  [batch]                        int32  input
// o        [batch, heads, size]           dtype  output

template <typename dtype>
static void run(
    const dtype* q, const dtype* k_pages, const dtype* v_pages, const int32_t* table, const int32_t* lengths,
    dtype* o, int64_t batch, int64_t heads, int64_t kv_heads, int64_t size, int64_t page, int64_t pages,
    int64_t most_pages
) {
    // TODO: compute the outputs. These loops visit every element, in row-major order.
    for (int64_t i = 0; i < batch * heads * size; ++i) o[i] = dtype{};
}

extern "C" void paged_attention_float32(
    const float* q, const float* k_pages, const float* v_pages, const int32_t* table, const int32_t* lengths,
    float* o, int64_t batch, int64_t heads, int64_t kv_heads, int64_t size, int64_t page, int64_t pages,
    int64_t most_pages
) {
    run<float>(q, k_pages, v_pages, table, lengths, o, batch, heads, kv_heads, size, page, pages, most_pages);
}

extern "C" void paged_attention_float16(
    const _Float16* q, const _Float16* k_pages, const _Float16* v_pages, const int32_t* table,
    const int32_t* lengths, _Float16* o, int64_t batch, int64_t heads, int64_t kv_heads, int64_t size,
    int64_t page, int64_t pages, int64_t most_pages
) {
    run<_Float16>(q, k_pages, v_pages, table, lengths, o, batch, heads, kv_heads, size, page, pages, most_pages);
}
