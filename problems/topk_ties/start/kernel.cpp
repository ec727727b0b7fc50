// topk_ties in C++: it builds, and is wrong until `run` is filled in.
#include <cstdint>

#if __GNUC__ >= 13
using bfloat16 = __bf16;
#else
using bfloat16 = uint16_t;  // its bits, since an older g++ has no such type
#endif

// x        [rows, cols]  dtype  input
// values   [rows, top]   dtype  output
// indices  [rows, top]   int32  output

template <typename dtype>
static void run(
    const dtype* x, dtype* values, int32_t* indices, int64_t k, int64_t rows, int64_t cols, int64_t top
) {
    // TODO: compute the outputs. These loops visit every element, in row-major order.
    for (int64_t i = 0; i < rows * top; ++i) values[i] = dtype{};
    for (int64_t i = 0; i < rows * top; ++i) indices[i] = int32_t{};
}

extern "C" void topk_ties_float32(
    const float* x, float* values, int32_t* indices, int64_t k, int64_t rows, int64_t cols, int64_t top
) {
    run<float>(x, values, indices, k, rows, cols, top);
}

extern "C" void topk_ties_bfloat16(
    const bfloat16* x, bfloat16* values, int32_t* indices, int64_t k, int64_t rows, int64_t cols, int64_t top
) {
    run<bfloat16>(x, values, indices, k, rows, cols, top);
}
