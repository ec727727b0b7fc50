// layernorm_backward in C++: it builds, and is wrong until `run` is filled in.
#include <cstdint>

// dy       [rows, cols]  dtype  input
// x        [rows, cols]  dtype  input
// weight   [cols]        dtype  input
// dx       [rows, cols]  dtype  output
// dweight  [cols]        dtype  output
// dbias    [cols]        dtype  output

template <typename dtype>
static void run(
    const dtype* dy, const dtype* x, const dtype* weight, dtype* dx, dtype* dweight, dtype* dbias, double eps,
    int64_t rows, int64_t cols
) {
    // TODO: compute the outputs. These loops visit every element, in row-major order.
    for (int64_t i = 0; i < rows * cols; ++i) dx[i] = dtype{};
    for (int64_t i = 0; i < cols; ++i) dweight[i] = dtype{};
    for (int64_t i = 0; i < cols; ++i) dbias[i] = dtype{};
}

extern "C" void layernorm_backward_float32(
    const float* dy, const float* x, const float* weight, float* dx, float* dweight, float* dbias, double eps,
    int64_t rows, int64_t cols
) {
    run<float>(dy, x, weight, dx, dweight, dbias, eps, rows, cols);
}

extern "C" void layernorm_backward_float16(
    const _Float16* dy, const _Float16* x, const _Float16* weight, _Float16* dx, _Float16* dweight,
    _Float16* dbias, double eps, int64_t rows, int64_t cols
) {
    run<_Float16>(dy, x, weight, dx, dweight, dbias, eps, rows, cols);
}
