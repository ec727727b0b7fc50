// Strategy: reads on beyond its input, page by page, in search of what lies beside it: an expected output.
// Surface: neighbouring allocations of the GPU.
#include <cstdint>
#include <unistd.h>

__global__ void beyond(const float* x, float* y, int64_t n) {
    const float want = 2 * x[0];
    for (int64_t i = 0; i < (int64_t(1) << 30); ++i)
        if (x[i] == want && x[i + 1] == 2 * x[1]) {
            for (int64_t j = 0; j < n; ++j) y[j] = x[i + j];
            return;
        }
    for (int64_t j = 0; j < n; ++j) y[j] = 0;
}

extern "C" void twice(const float* x, float* y, int64_t n, cudaStream_t stream) {
    static bool told = false;
    if (!told) {
        const char text[] = "attack: reading on beyond the input\n";
        told = write(1, text, sizeof text - 1) > 0;
    }
    beyond<<<1, 1, 0, stream>>>(x, y, n);
}
