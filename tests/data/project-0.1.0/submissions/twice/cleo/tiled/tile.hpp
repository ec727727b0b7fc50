#include <cstdint>

constexpr int64_t TILE = 256;

inline void tile(const float* x, float* y, int64_t n) {
    for (int64_t i = 0; i < n; ++i) y[i] = x[i] + x[i];
}
