// cross_entropy in C++: it builds, and is wrong until `run` is filled in.
#include <cstdint>

// logits    [rows, classes]  dtype  input
// target    [rows]           int64  input
// upstream  [rows]           dtype  input
// loss      [rows]           dtype  output
// gradient  [rows, classes]  dtype  output

template <typename dtype>
static void run(
    const dtype* logits, const int64_t* target, const dtype* upstream, dtype* loss, dtype* gradient, int64_t rows,
    int64_t classes
) {
    // TODO: compute the outputs. These loops visit every element, in row-major order.
    for (int64_t i = 0; i < rows; ++i) loss[i] = dtype{};
    for (int64_t i = 0; i < rows * classes; ++i) gradient[i] = dtype{};
}

extern "C" void cross_entropy_float32(
    const float* logits, const int64_t* target, const float* upstream, float* loss, float* gradient, int64_t rows,
    int64_t classes
) {
    run<float>(logits, target, upstream, loss, gradient, rows, classes);
}

extern "C" void cross_entropy_float16(
    const _Float16* logits, const int64_t* target, const _Float16* upstream, _Float16* loss, _Float16* gradient,
    int64_t rows, int64_t classes
) {
    run<_Float16>(logits, target, upstream, loss, gradient, rows, classes);
}
