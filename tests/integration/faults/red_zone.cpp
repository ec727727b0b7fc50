#include <cstdint>

extern "C" void scale(const float* x, float* y, int64_t n) {
    for (int64_t i = 0; i < n; ++i) y[i] = 2 * x[i];
    reinterpret_cast<uint32_t*>(y)[n] ^= 0xffffffffu;  // one too many: every byte, whatever the poison is
}
