#include <cstdint>

extern "C" void row_sum(const float* x, float* y, int64_t rows, int64_t cols) {
    for (int64_t row = 0; row < rows; ++row) {
        float lanes[8] = {};
        int64_t col = 0;
        for (; col + 8 <= cols; col += 8)
            for (int lane = 0; lane < 8; ++lane) lanes[lane] += x[row * cols + col + lane];
        float sum = 0;
        for (float lane : lanes) sum += lane;
        for (; col < cols; ++col) sum += x[row * cols + col];
        y[row] = sum;
    }
}
