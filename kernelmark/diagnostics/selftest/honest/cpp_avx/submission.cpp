// Intrinsics where the processor has them, with streaming stores that are fenced.
#include <cstdint>
#if defined(__AVX512F__) || defined(__AVX2__)
#include <immintrin.h>
#endif

extern "C" void twice(const float* x, float* y, int64_t n) {
    int64_t i = 0;
#if defined(__AVX512F__)
    for (; i + 16 <= n; i += 16) {
        const __m512 v = _mm512_loadu_ps(x + i);
        _mm512_stream_ps(y + i, _mm512_add_ps(v, v));  // outputs begin at multiples of 512 bytes
    }
    _mm_sfence();
#elif defined(__AVX2__)
    for (; i + 8 <= n; i += 8) {
        const __m256 v = _mm256_loadu_ps(x + i);
        _mm256_stream_ps(y + i, _mm256_add_ps(v, v));
    }
    _mm_sfence();
#endif
    for (; i < n; ++i) y[i] = 2 * x[i];
}
