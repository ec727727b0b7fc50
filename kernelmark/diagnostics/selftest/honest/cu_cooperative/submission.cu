// A cooperative launch, whose blocks wait for one another, with scratch of cudaMalloc that is kept and grows.
#include <algorithm>
#include <cooperative_groups.h>
#include <cstdint>
#include <cuda_runtime.h>

namespace cg = cooperative_groups;

__global__ void there_and_back(const float* x, float* scratch, float* y, int64_t n) {
    cg::grid_group grid = cg::this_grid();
    for (int64_t i = int64_t(grid.thread_rank()); i < n; i += int64_t(grid.size())) scratch[n - 1 - i] = x[i];
    grid.sync();
    cg::thread_block_tile<32> warp = cg::tiled_partition<32>(cg::this_thread_block());
    for (int64_t low = int64_t(grid.thread_rank()) - warp.thread_rank(); low < n; low += int64_t(grid.size())) {
        const int64_t i = low + warp.thread_rank();
        const float mine = i < n ? scratch[n - 1 - i] : 0.0f;
        const float mirrored = warp.shfl(mine, 31 - warp.thread_rank());
        const float again = warp.shfl(mirrored, 31 - warp.thread_rank());
        if (i < n) y[i] = mine + again;
    }
}

extern "C" void twice(const float* x, float* y, int64_t n, cudaStream_t stream) {
    static float* scratch = nullptr;
    static int64_t room = 0;
    static int blocks = 0;
    if (!blocks) {
        int device, processors, each;
        cudaGetDevice(&device);
        cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
        cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, there_and_back, 256, 0);
        blocks = processors * std::min(each, 2);
    }
    if (n > room) {
        cudaFree(scratch);
        cudaMalloc(&scratch, n * sizeof(float));
        room = n;
    }
    void* arguments[] = {&x, &scratch, &y, &n};
    cudaLaunchCooperativeKernel((const void*)there_and_back, dim3(blocks), dim3(256), arguments, 0, stream);
}
