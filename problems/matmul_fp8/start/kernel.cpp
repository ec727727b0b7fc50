// matmul_fp8 in C++: it builds, and is wrong until `matmul_fp8` is filled in.
#include <cstdint>

#if __GNUC__ >= 13
using bfloat16 = __bf16;
#else
using bfloat16 = uint16_t;  // its bits, since an older g++ has no such type
#endif

// a        [m, k]                   float8_e4m3fn  input
// b        [n, k]                   float8_e4m3fn  input
// a_scale  [m // rows, k // depth]  float32        input
// b_scale  [n // cols, k // depth]  float32        input
// c        [m, n]                   bfloat16       output

extern "C" void matmul_fp8(
    const uint8_t* a, const uint8_t* b, const float* a_scale, const float* b_scale, bfloat16* c, int64_t m,
    int64_t n, int64_t k, int64_t rows, int64_t cols, int64_t depth
) {
    // TODO: compute the outputs. These loops visit every element, in row-major order.
    for (int64_t i = 0; i < m * n; ++i) c[i] = bfloat16{};
}
