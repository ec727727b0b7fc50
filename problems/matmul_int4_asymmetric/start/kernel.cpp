// matmul_int4_asymmetric in C++: it builds, and is wrong until `run` is filled in.
#include <cstdint>

// x       [m, k]          dtype  input
// packed  [n, k // 2]     uint8  input
// scale   [n, k // size]  dtype  input
// zero    [n, k // size]  uint8  input
// y       [m, n]          dtype  output

template <typename dtype>
static void run(
    const dtype* x, const uint8_t* packed, const dtype* scale, const uint8_t* zero, dtype* y, int64_t m, int64_t n,
    int64_t k, int64_t size
) {
    // TODO: compute the outputs. These loops visit every element, in row-major order.
    for (int64_t i = 0; i < m * n; ++i) y[i] = dtype{};
}

extern "C" void matmul_int4_asymmetric_float16(
    const _Float16* x, const uint8_t* packed, const _Float16* scale, const uint8_t* zero, _Float16* y, int64_t m,
    int64_t n, int64_t k, int64_t size
) {
    run<_Float16>(x, packed, scale, zero, y, m, n, k, size);
}
