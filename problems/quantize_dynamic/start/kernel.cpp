// quantize_dynamic in C++: it builds, and is wrong until `quantize_dynamic` is filled in.
#include <cstdint>

// x        [m, k]  float16  input
// w        [n, k]  int8     input
// w_scale  [n]     float32  input
// y        [m, n]  float16  output

extern "C" void quantize_dynamic(
    const _Float16* x, const int8_t* w, const float* w_scale, _Float16* y, int64_t m, int64_t n, int64_t k
) {
    // TODO: compute the outputs. These loops visit every element, in row-major order.
    for (int64_t i = 0; i < m * n; ++i) y[i] = _Float16{};
}
