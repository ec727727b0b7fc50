#include "tile.hpp"

extern "C" void twice(const float* x, float* y, int64_t n) {
    for (int64_t from = 0; from < n; from += TILE) tile(x + from, y + from, from + TILE < n ? TILE : n - from);
}
