// Vector addition in C++: a loop that the compiler vectorises.

#include <cstdint>

// out = x + y: [n] each, in host memory.
extern "C" void vector_add(const float* __restrict x, const float* __restrict y, float* __restrict out, int64_t n) {
    for (int64_t i = 0; i < n; ++i) out[i] = x[i] + y[i];
}
