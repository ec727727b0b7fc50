// Right: each row's sum is one running sum in float32, whose error grows with the root of its terms.

#include <algorithm>
#include <cmath>
#include <cstdint>

extern "C" void softmax(const float* x, float* y, int64_t rows, int64_t cols) {
    for (int64_t row = 0; row < rows; ++row, x += cols, y += cols) {
        const float top = *std::max_element(x, x + cols), shift = std::isinf(top) ? 0.0f : top;
        float total = 0.0f;
        for (int64_t i = 0; i < cols; ++i) total += y[i] = std::exp(x[i] - shift);
        for (int64_t i = 0; i < cols; ++i) y[i] /= total;
    }
}
