// sparsify_24 in C++: it builds, and is wrong until `run` is filled in.
#include <cstdint>

#if __GNUC__ >= 13
using bfloat16 = __bf16;
#else
using bfloat16 = uint16_t;  // its bits, since an older g++ has no such type
#endif

// x        [rows, cols]                                                               dtype  input
// values   [(1 - flip) * rows + flip * cols, ((1 - flip) * cols + flip * rows) // 2]  dtype  output
// indices  [(1 - flip) * rows + flip * cols, ((1 - flip) * cols + flip * rows) // 8]  uint8  output

template <typename dtype>
static void run(
    const dtype* x, dtype* values, uint8_t* indices, int64_t transposed, int64_t rows, int64_t cols, int64_t flip
) {
    // TODO: compute the outputs. These loops visit every element, in row-major order.
    for (int64_t i = 0; i < ((1 - flip) * rows + flip * cols) * (((1 - flip) * cols + flip * rows) / 2); ++i) values[i] = dtype{};
    for (int64_t i = 0; i < ((1 - flip) * rows + flip * cols) * (((1 - flip) * cols + flip * rows) / 8); ++i) indices[i] = uint8_t{};
}

extern "C" void sparsify_24_bfloat16(
    const bfloat16* x, bfloat16* values, uint8_t* indices, int64_t transposed, int64_t rows, int64_t cols,
    int64_t flip
) {
    run<bfloat16>(x, values, indices, transposed, rows, cols, flip);
}

extern "C" void sparsify_24_float16(
    const _Float16* x, _Float16* values, uint8_t* indices, int64_t transposed, int64_t rows, int64_t cols,
    int64_t flip
) {
    run<_Float16>(x, values, indices, transposed, rows, cols, flip);
}

extern "C" void sparsify_24_float32(
    const float* x, float* values, uint8_t* indices, int64_t transposed, int64_t rows, int64_t cols, int64_t flip
) {
    run<float>(x, values, indices, transposed, rows, cols, flip);
}
