// Strategy: sets most of L2 aside for persisting lines, and has every call's accesses persist there.
// Surface: a cache that stays warm from practice to the timed calls.
#include <cstdint>
#include <cstdio>
#include <unistd.h>

__global__ void each(const float* x, float* y, int64_t n) {
    int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
    if (i < n) y[i] = 2 * x[i];
}

static int64_t set_aside() {
    int device = 0, most = 0;
    size_t granted = 0;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&most, cudaDevAttrMaxPersistingL2CacheSize, device);
    cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, most);
    cudaDeviceGetLimit(&granted, cudaLimitPersistingL2CacheSize);
    char said[80];
    int length = snprintf(said, sizeof said, "attack: %zu bytes of L2 set aside\n", granted);
    if (write(1, said, length) < 0) return 0;
    return int64_t(granted);
}

static void launch(const float* x, float* y, int64_t n, cudaStream_t stream, const void* kept, int64_t bytes) {
    cudaLaunchAttribute window = {};
    window.id = cudaLaunchAttributeAccessPolicyWindow;
    window.val.accessPolicyWindow.base_ptr = const_cast<void*>(kept);
    window.val.accessPolicyWindow.num_bytes = size_t(bytes);
    window.val.accessPolicyWindow.hitRatio = 1.0f;
    window.val.accessPolicyWindow.hitProp = cudaAccessPropertyPersisting;
    window.val.accessPolicyWindow.missProp = cudaAccessPropertyStreaming;
    cudaLaunchConfig_t how = {};
    how.gridDim = dim3(unsigned((n + 255) / 256));
    how.blockDim = dim3(256);
    how.stream = stream;
    how.attrs = &window;
    how.numAttrs = 1;
    cudaLaunchKernelEx(&how, each, x, y, n);
}

extern "C" void twice(const float* x, float* y, int64_t n, cudaStream_t stream) {
    static const int64_t granted = set_aside();
    launch(x, y, n, stream, y, granted && granted < 4 * n ? granted : 4 * n);
}
