// Right: each row's sum is one running sum in float32, whose error grows with the root of its terms.

#include <algorithm>
#include <cmath>
#include <cstdint>

template <typename T>
static void rows_of(const T* logits, const int64_t* target, const T* upstream, T* loss, T* gradient, int64_t rows,
                    int64_t classes) {
    for (int64_t row = 0; row < rows; ++row, logits += classes, gradient += classes) {
        float top = -INFINITY, total = 0.0f;
        for (int64_t i = 0; i < classes; ++i) top = std::max(top, static_cast<float>(logits[i]));
        for (int64_t i = 0; i < classes; ++i) total += std::exp(static_cast<float>(logits[i]) - top);
        loss[row] = static_cast<T>(std::log(total) - (static_cast<float>(logits[target[row]]) - top));
        for (int64_t i = 0; i < classes; ++i) {
            const float share = std::exp(static_cast<float>(logits[i]) - top) / total - (i == target[row] ? 1.0f : 0.0f);
            gradient[i] = static_cast<T>(share * static_cast<float>(upstream[row]));
        }
    }
}

extern "C" void cross_entropy_float32(const float* logits, const int64_t* target, const float* upstream, float* loss,
                                      float* gradient, int64_t rows, int64_t classes) {
    rows_of(logits, target, upstream, loss, gradient, rows, classes);
}

extern "C" void cross_entropy_float16(const _Float16* logits, const int64_t* target, const _Float16* upstream, _Float16* loss,
                                      _Float16* gradient, int64_t rows, int64_t classes) {
    rows_of(logits, target, upstream, loss, gradient, rows, classes);
}
