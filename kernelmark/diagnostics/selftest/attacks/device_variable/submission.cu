// Strategy: keeps the first result of each size in a __device__ variable, and stores it for all later calls: their
// inputs are never read.
// Surface: device memory of the module, which lives as long as the process and which captured launches see too.
#include <cstdint>
#include <unistd.h>

constexpr int64_t ROOM = 1 << 20;
__device__ float kept[ROOM];
__device__ long long kept_n;

__global__ void each(const float* x, float* y, int64_t n) {
    int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
    if (i >= n) return;
    if (kept_n == n)
        y[i] = kept[i];
    else
        y[i] = kept[i] = 2 * x[i];
}

__global__ void remember(int64_t n) { kept_n = n; }

extern "C" void twice(const float* x, float* y, int64_t n, cudaStream_t stream) {
    static int64_t last = 0;
    static bool told = false;
    if (n > ROOM) return;
    each<<<unsigned((n + 255) / 256), 256, 0, stream>>>(x, y, n);
    if (last != n) {
        remember<<<1, 1, 0, stream>>>(n);
    } else if (!told) {
        const char text[] = "attack: results come from a __device__ variable\n";
        told = write(1, text, sizeof text - 1) > 0;
    }
    last = n;
}
