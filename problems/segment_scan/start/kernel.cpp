// segment_scan in C++: it builds, and is wrong until `segment_scan` is filled in.
#include <cstdint>

// x        [n]             float32  input
// offsets  [segments + 1]  int32    input
// y        [n]             float32  output

extern "C" void segment_scan(const float* x, const int32_t* offsets, float* y, int64_t n, int64_t segments) {
    // TODO: compute the outputs. These loops visit every element, in row-major order.
    for (int64_t i = 0; i < n; ++i) y[i] = float{};
}
