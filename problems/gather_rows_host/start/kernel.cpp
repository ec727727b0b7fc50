// gather_rows_host in C++: it builds, and is wrong until `gather_rows_host` is filled in.
#include <cstdint>

// table  [rows, cols]    float32  input
// ids    [picked]        int64    input
// out    [picked, cols]  float32  output

extern "C" void gather_rows_host(
    const float* table, const int64_t* ids, float* out, int64_t rows, int64_t cols, int64_t picked
) {
    // TODO: compute the outputs. These loops visit every element, in row-major order.
    for (int64_t i = 0; i < picked * cols; ++i) out[i] = float{};
}
