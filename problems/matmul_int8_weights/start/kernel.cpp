// matmul_int8_weights in C++: it builds, and is wrong until it is filled in.
#include <cstdint>

// x      [m, k]  dtype    input
// w      [n, k]  int8     input
// scale  [n]     float32  input
// y      [m, n]  dtype    output

extern "C" void matmul_int8_weights_float16(const _Float16* x, const int8_t* w, const float* scale, _Float16* y, int64_t m, int64_t n, int64_t k) {
    // TODO: compute the outputs
}
