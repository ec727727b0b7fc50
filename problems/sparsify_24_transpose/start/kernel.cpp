// sparsify_24_transpose in C++: it builds, and is wrong until `run` is filled in.
#include <cstdint>

#if __GNUC__ >= 13
using bfloat16 = __bf16;
#else
using bfloat16 = uint16_t;  // its bits, since an older g++ has no such type
#endif

// x          [rows, cols]       dtype  input
// values     [rows, cols // 2]  dtype  output
// indices    [rows, cols // 8]  uint8  output
// values_t   [cols, rows // 2]  dtype  output
// indices_t  [cols, rows // 8]  uint8  output

template <typename dtype>
static void run(
    const dtype* x, dtype* values, uint8_t* indices, dtype* values_t, uint8_t* indices_t, int64_t rows,
    int64_t cols
) {
    // TODO: compute the outputs. These loops visit every element, in row-major order.
    for (int64_t i = 0; i < rows * (cols / 2); ++i) values[i] = dtype{};
    for (int64_t i = 0; i < rows * (cols / 8); ++i) indices[i] = uint8_t{};
    for (int64_t i = 0; i < cols * (rows / 2); ++i) values_t[i] = dtype{};
    for (int64_t i = 0; i < cols * (rows / 8); ++i) indices_t[i] = uint8_t{};
}

extern "C" void sparsify_24_transpose_bfloat16(
    const bfloat16* x, bfloat16* values, uint8_t* indices, bfloat16* values_t, uint8_t* indices_t, int64_t rows,
    int64_t cols
) {
    run<bfloat16>(x, values, indices, values_t, indices_t, rows, cols);
}

extern "C" void sparsify_24_transpose_float16(
    const _Float16* x, _Float16* values, uint8_t* indices, _Float16* values_t, uint8_t* indices_t, int64_t rows,
    int64_t cols
) {
    run<_Float16>(x, values, indices, values_t, indices_t, rows, cols);
}

extern "C" void sparsify_24_transpose_float32(
    const float* x, float* values, uint8_t* indices, float* values_t, uint8_t* indices_t, int64_t rows,
    int64_t cols
) {
    run<float>(x, values, indices, values_t, indices_t, rows, cols);
}
