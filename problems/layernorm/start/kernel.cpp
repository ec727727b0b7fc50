// layernorm in C++: it builds, and is wrong until `run` is filled in.
#include <cstdint>

// x       [rows, cols]  dtype  input
// weight  [cols]        dtype  input
// bias    [cols]        dtype  input
// y       [rows, cols]  dtype  output

template <typename dtype>
static void run(
    const dtype* x, const dtype* weight, const dtype* bias, dtype* y, double eps, int64_t rows, int64_t cols
) {
    // TODO: compute the outputs. These loops visit every element, in row-major order.
    for (int64_t i = 0; i < rows * cols; ++i) y[i] = dtype{};
}

extern "C" void layernorm_float32(
    const float* x, const float* weight, const float* bias, float* y, double eps, int64_t rows, int64_t cols
) {
    run<float>(x, weight, bias, y, eps, rows, cols);
}

extern "C" void layernorm_float16(
    const _Float16* x, const _Float16* weight, const _Float16* bias, _Float16* y, double eps, int64_t rows,
    int64_t cols
) {
    run<_Float16>(x, weight, bias, y, eps, rows, cols);
}
