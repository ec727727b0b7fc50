// matmul_sparse_24 in C++: it builds, and is wrong until `run` is filled in.
#include <cstdint>

// x        [m, k]       dtype  input
// values   [n, k // 2]  dtype  input
// indices  [n, k // 8]  uint8  input
// y        [m, n]       dtype  output

template <typename dtype>
static void run(
    const dtype* x, const dtype* values, const uint8_t* indices, dtype* y, int64_t m, int64_t n, int64_t k
) {
    // TODO: compute the outputs. These loops visit every element, in row-major order.
    for (int64_t i = 0; i < m * n; ++i) y[i] = dtype{};
}

extern "C" void matmul_sparse_24_float16(
    const _Float16* x, const _Float16* values, const uint8_t* indices, _Float16* y, int64_t m, int64_t n, int64_t k
) {
    run<_Float16>(x, values, indices, y, m, n, k);
}
