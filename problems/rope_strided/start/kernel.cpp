// rope_strided in C++: it builds, and is wrong until `run` is filled in.
#include <cstdint>

#if __GNUC__ >= 13
using bfloat16 = __bf16;
#else
using bfloat16 = uint16_t;  // its bits, since an older g++ has no such type
#endif

// q          [tokens, heads, dim] strides [3 * heads * dim, dim, 1]  dtype  inout
// positions  [tokens]                                                int32  input
// table      [1024, dim]                                             dtype  input

template <typename dtype>
static void run(
    dtype* q, const int32_t* positions, const dtype* table, int64_t tokens, int64_t heads, int64_t dim
) {
    // TODO: compute the outputs. These loops visit every element, in row-major order.
    for (int64_t i = 0; i < tokens * heads * dim; ++i) {
        const int64_t place = i / (heads * dim) * (3 * heads * dim) + i / dim % heads * dim + i % dim;
        q[place] = q[place];
    }
}

extern "C" void rope_strided_float32(
    float* q, const int32_t* positions, const float* table, int64_t tokens, int64_t heads, int64_t dim
) {
    run<float>(q, positions, table, tokens, heads, dim);
}

extern "C" void rope_strided_bfloat16(
    bfloat16* q, const int32_t* positions, const bfloat16* table, int64_t tokens, int64_t heads, int64_t dim
) {
    run<bfloat16>(q, positions, table, tokens, heads, dim);
}
