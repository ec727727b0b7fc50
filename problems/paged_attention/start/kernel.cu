// paged_attention in CUDA: it builds, and is wrong until `compute` is filled in.
#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

// q        [batch, heads, size]           dtype  input
// k_pages  [pages, page, kv_heads, size]  dtype  input
// v_pages  [pages, page, kv_heads, size]  dtype  input
// table    [batch, most_pages]            int32  input
// lengths  [batch]                        int32  input
// o        [batch, heads, size]           dtype  output

template <typename dtype>
static __global__ void compute(
    const dtype* q, const dtype* k_pages, const dtype* v_pages, const int32_t* table, const int32_t* lengths,
    dtype* o, int64_t batch, int64_t heads, int64_t kv_heads, int64_t size, int64_t page, int64_t pages,
    int64_t most_pages
) {
    const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    // TODO: compute the outputs. There is a thread for every element, in row-major order.
    if (i < batch * heads * size) o[i] = dtype{};
}

template <typename dtype>
static void run(
    const dtype* q, const dtype* k_pages, const dtype* v_pages, const int32_t* table, const int32_t* lengths,
    dtype* o, int64_t batch, int64_t heads, int64_t kv_heads, int64_t size, int64_t page, int64_t pages,
    int64_t most_pages, cudaStream_t stream
) {
    const int64_t elements = batch * heads * size;
    if (elements > 0)
        compute<dtype><<<unsigned((elements + 255) / 256), 256, 0, stream>>>(
            q, k_pages, v_pages, table, lengths, o, batch, heads, kv_heads, size, page, pages, most_pages
        );
}

extern "C" void paged_attention_float32(
    const float* q, const float* k_pages, const float* v_pages, const int32_t* table, const int32_t* lengths,
    float* o, int64_t batch, int64_t heads, int64_t kv_heads, int64_t size, int64_t page, int64_t pages,
    int64_t most_pages, cudaStream_t stream
) {
    run<float>(q, k_pages, v_pages, table, lengths, o, batch, heads, kv_heads, size, page, pages, most_pages, stream);
}

extern "C" void paged_attention_float16(
    const __half* q, const __half* k_pages, const __half* v_pages, const int32_t* table, const int32_t* lengths,
    __half* o, int64_t batch, int64_t heads, int64_t kv_heads, int64_t size, int64_t page, int64_t pages,
    int64_t most_pages, cudaStream_t stream
) {
    run<__half>(q, k_pages, v_pages, table, lengths, o, batch, heads, kv_heads, size, page, pages, most_pages, stream);
}

extern "C" void paged_attention_bfloat16(
    const __nv_bfloat16* q, const __nv_bfloat16* k_pages, const __nv_bfloat16* v_pages, const int32_t* table,
    const int32_t* lengths, __nv_bfloat16* o, int64_t batch, int64_t heads, int64_t kv_heads, int64_t size,
    int64_t page, int64_t pages, int64_t most_pages, cudaStream_t stream
) {
    run<__nv_bfloat16>(q, k_pages, v_pages, table, lengths, o, batch, heads, kv_heads, size, page, pages, most_pages, stream);
}
