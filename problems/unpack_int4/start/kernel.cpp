// unpack_int4 in C++: it builds, and is wrong until `run` is filled in.
#include <cstdint>

// packed  [rows, groups * size // 2]  uint8  input
// scale   [rows, groups]              dtype  input
// zero    [rows, groups]              int8   input
// y       [rows, groups * size]       dtype  output

template <typename dtype>
static void run(
    const uint8_t* packed, const dtype* scale, const int8_t* zero, dtype* y, int64_t rows, int64_t groups,
    int64_t size
) {
    // TODO: compute the outputs. These loops visit every element, in row-major order.
    for (int64_t i = 0; i < rows * (groups * size); ++i) y[i] = dtype{};
}

extern "C" void unpack_int4_float16(
    const uint8_t* packed, const _Float16* scale, const int8_t* zero, _Float16* y, int64_t rows, int64_t groups,
    int64_t size
) {
    run<_Float16>(packed, scale, zero, y, rows, groups, size);
}
