// vector_add in C++: it builds, and is wrong until `vector_add` is filled in.
#include <cstdint>

// x    [n]  float32  input
// y    [n]  float32  input
// out  [n]  float32  output

extern "C" void vector_add(const float* x, const float* y, float* out, int64_t n) {
    // TODO: compute the outputs. These loops visit every element, in row-major order.
    for (int64_t i = 0; i < n; ++i) out[i] = float{};
}
