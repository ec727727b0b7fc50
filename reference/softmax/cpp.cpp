// Row-wise softmax in C++: three passes a row.
//
// The row's maximum is subtracted before exp(), so that nothing overflows. Where every element is -inf, 0 is subtracted
// instead, the sum is 0, and 0/0 gives the NaN that the definition asks for.

#include <algorithm>
#include <cmath>
#include <cstdint>

// y = softmax of each row of x: [rows, cols] each, in host memory.
extern "C" void softmax(const float* x, float* y, int64_t rows, int64_t cols) {
    for (int64_t row = 0; row < rows; ++row, x += cols, y += cols) {
        const float top = *std::max_element(x, x + cols), shift = std::isinf(top) ? 0.0f : top;
        double total = 0.0;
        for (int64_t i = 0; i < cols; ++i) total += y[i] = std::exp(x[i] - shift);
        for (int64_t i = 0; i < cols; ++i) y[i] = float(y[i] / total);
    }
}
