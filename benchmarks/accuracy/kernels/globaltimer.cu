// How finely the global timer ticks, which bounds how well the duration of `spin` is known. No submission.

#include <cstdint>
#include <cuda_runtime.h>

static __device__ int64_t now_ns() {
    int64_t time;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time));
    return time;
}

static __global__ void smallest_step(int64_t* step_ns) {
    int64_t least = INT64_MAX, last = now_ns();
    for (int seen = 0; seen < 64;) {
        const int64_t now = now_ns();
        if (now == last) continue;
        least = now - last < least ? now - last : least;
        last = now;
        ++seen;
    }
    *step_ns = least;
}

// step_ns: [1] on the device.
extern "C" void globaltimer_step(int64_t* step_ns, cudaStream_t stream) {
    smallest_step<<<1, 1, 0, stream>>>(step_ns);
}
