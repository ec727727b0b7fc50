// Kahan's sums, a row at a time.
#include <cstdint>
#include <vector>

extern "C" void product(const float* a, const float* b, float* c, int64_t n) {
#pragma omp parallel
    {
        std::vector<float> total(n), lost(n);
#pragma omp for
        for (int64_t i = 0; i < n; ++i) {
            total.assign(n, 0.0f);
            lost.assign(n, 0.0f);
            for (int64_t k = 0; k < n; ++k) {
                const float left = a[i * n + k];
                for (int64_t j = 0; j < n; ++j) {
                    const float term = left * b[k * n + j] - lost[j];
                    const float sum = total[j] + term;
                    lost[j] = (sum - total[j]) - term;
                    total[j] = sum;
                }
            }
            for (int64_t j = 0; j < n; ++j) c[i * n + j] = total[j];
        }
    }
}
