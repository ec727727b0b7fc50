// matmul_int8 in C++: it builds, and is wrong until `matmul_int8` is filled in.
#include <cstdint>

#if __GNUC__ >= 13
using bfloat16 = __bf16;
#else
using bfloat16 = uint16_t;  // its bits, since an older g++ has no such type
#endif

// a        [m, k]  int8      input
// b        [n, k]  int8      input
// a_scale  [m]     float32   input
// b_scale  [n]     float32   input
// c        [m, n]  bfloat16  output

extern "C" void matmul_int8(
    const int8_t* a, const int8_t* b, const float* a_scale, const float* b_scale, bfloat16* c, int64_t m,
    int64_t n, int64_t k
) {
    // TODO: compute the outputs. These loops visit every element, in row-major order.
    for (int64_t i = 0; i < m * n; ++i) c[i] = bfloat16{};
}
