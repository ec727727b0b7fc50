// OpenMP, with scratch that each thread keeps.
#include <algorithm>
#include <cstdint>
#include <vector>

extern "C" void twice(const float* __restrict__ x, float* __restrict__ y, int64_t n) {
    constexpr int64_t BLOCK = 4096;
    static thread_local std::vector<float> scratch;
#pragma omp parallel for schedule(dynamic, 4)
    for (int64_t low = 0; low < n; low += BLOCK) {
        const int64_t count = std::min(BLOCK, n - low);
        scratch.assign(x + low, x + low + count);
#pragma omp simd
        for (int64_t i = 0; i < count; ++i) scratch[i] += scratch[i];
        std::copy_n(scratch.data(), count, y + low);
    }
}
