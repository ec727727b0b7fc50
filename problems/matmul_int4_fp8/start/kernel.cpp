// matmul_int4_fp8 in C++: it builds, and is wrong until it is filled in.
#include <cstdint>

#if __GNUC__ >= 13
using bfloat16 = __bf16;
#else
using bfloat16 = uint16_t;  // its bits, since an older g++ has no such type
#endif

// x        [m, k]               float8_e4m3fn  input
// packed   [n, ceil_div(k, 2)]  uint8          input
// x_scale  [m]                  float32        input
// w_scale  [n]                  float32        input
// y        [m, n]               bfloat16       output

extern "C" void matmul_int4_fp8(const uint8_t* x, const uint8_t* packed, const float* x_scale, const float* w_scale, bfloat16* y, int64_t m, int64_t n, int64_t k) {
    // TODO: compute the outputs
}
