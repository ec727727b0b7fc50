// matmul_int4_int8 in C++: it builds, and is wrong until `matmul_int4_int8` is filled in.
#include <cstdint>

// x        [m, k]               int8     input
// packed   [n, ceil_div(k, 2)]  uint8    input
// x_scale  [m]                  float32  input
// w_scale  [n]                  float32  input
// y        [m, n]               float16  output

extern "C" void matmul_int4_int8(
    const int8_t* x, const uint8_t* packed, const float* x_scale, const float* w_scale, _Float16* y, int64_t m,
    int64_t n, int64_t k
) {
    // TODO: compute the outputs. These loops visit every element, in row-major order.
    for (int64_t i = 0; i < m * n; ++i) y[i] = _Float16{};
}
