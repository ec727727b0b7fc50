// Tiles with a packed panel, and sums in float64.
#include <algorithm>
#include <cstdint>

namespace {

constexpr int64_t TILE = 64;

template <typename Sum>
void tile(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, int64_t n, int64_t row,
          int64_t column) {
    alignas(64) Sum total[TILE][TILE] = {};
    alignas(64) float panel[TILE][TILE];
    const int64_t rows = std::min(TILE, n - row), columns = std::min(TILE, n - column);
    for (int64_t low = 0; low < n; low += TILE) {
        const int64_t depth = std::min(TILE, n - low);
        for (int64_t k = 0; k < depth; ++k)
            for (int64_t j = 0; j < TILE; ++j) panel[k][j] = j < columns ? b[(low + k) * n + column + j] : 0.0f;
        for (int64_t i = 0; i < rows; ++i)
            for (int64_t k = 0; k < depth; ++k) {
                const Sum left = a[(row + i) * n + low + k];
                for (int64_t j = 0; j < TILE; ++j) total[i][j] += left * Sum(panel[k][j]);
            }
    }
    for (int64_t i = 0; i < rows; ++i) std::copy_n(total[i], columns, c + (row + i) * n + column);
}

}  // namespace

extern "C" void product(const float* a, const float* b, float* c, int64_t n) {
#pragma omp parallel for collapse(2)
    for (int64_t row = 0; row < n; row += TILE)
        for (int64_t column = 0; column < n; column += TILE) tile<double>(a, b, c, n, row, column);
}
