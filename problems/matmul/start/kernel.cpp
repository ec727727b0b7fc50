// matmul in C++: it builds, and is wrong until `run` is filled in.
#include <cstdint>

// a  [m, k]  dtype  input
// b  [k, n]  dtype  input
// c  [m, n]  dtype  output

template <typename dtype>
static void run(const dtype* a, const dtype* b, dtype* c, int64_t m, int64_t n, int64_t k) {
    // TODO: compute the outputs. These loops visit every element, in row-major order.
    for (int64_t i = 0; i < m * n; ++i) c[i] = dtype{};
}

extern "C" void matmul_float32(const float* a, const float* b, float* c, int64_t m, int64_t n, int64_t k) {
    run<float>(a, b, c, m, n, k);
}

extern "C" void matmul_float16(const _Float16* a, const _Float16* b, _Float16* c, int64_t m, int64_t n, int64_t k) {
    run<_Float16>(a, b, c, m, n, k);
}
