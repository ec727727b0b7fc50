// matmul_block_sparse in C++: it builds, and is wrong until `run` is filled in.
#include <cstdint>

// x        [m, k]                             dtype  input
// values   [n // block, slots, block, block]  dtype  input
// indices  [n // block, slots]                int32  input
// y        [m, n]                             dtype  output

template <typename dtype>
static void run(
    const dtype* x, const dtype* values, const int32_t* indices, dtype* y, int64_t m, int64_t n, int64_t k,
    int64_t block, int64_t slots
) {
    // TODO: compute the outputs. These loops visit every element, in row-major order.
    for (int64_t i = 0; i < m * n; ++i) y[i] = dtype{};
}

extern "C" void matmul_block_sparse_float16(
    const _Float16* x, const _Float16* values, const int32_t* indices, _Float16* y, int64_t m, int64_t n,
    int64_t k, int64_t block, int64_t slots
) {
    run<_Float16>(x, values, indices, y, m, n, k, block, slots);
}
