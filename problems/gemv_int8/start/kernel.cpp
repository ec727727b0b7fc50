// gemv_int8 in C++: it builds, and is wrong until `gemv_int8` is filled in.
#include <cstdint>

// w      [n, k]  int8     input
// scale  [n]     float32  input
// x      [k]     float16  input
// y      [n]     float16  output

extern "C" void gemv_int8(
    const int8_t* w, const float* scale, const _Float16* x, _Float16* y, int64_t n, int64_t k
) {
    // TODO: compute the outputs. These loops visit every element, in row-major order.
    for (int64_t i = 0; i < n; ++i) y[i] = _Float16{};
}
