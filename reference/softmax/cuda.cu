// Row-wise softmax in CUDA: a row is read from memory once and written once, as long as it fits on the chip.
//
// - Up to 1024 columns a warp holds the row in registers: no barrier, and many rows at work in each multiprocessor.
// - Longer rows wait in shared memory. Beyond 8192 columns, on Hopper and later, a cluster of 2 to 8 blocks shares a
//   row: several small blocks fit into one multiprocessor, and while one waits for its sums, others use the memory.
// - What exceeds all shared memory of a cluster is read twice: a first pass finds maximum and sum together.
//
// Maxima and sums travel as pairs. Where every element is -inf there is no finite maximum: 0 is subtracted instead, the
// sum is 0, and 0/0 gives the NaN that the definition asks for.

#include <algorithm>
#include <cmath>
#include <cooperative_groups.h>
#include <cstdint>
#include <cuda_pipeline.h>
#include <cuda_runtime.h>

constexpr int LONGEST_IN_WARP = 1024, WARP_THREADS = 128, MAX_THREADS = 512, MAX_CLUSTER = 8;
constexpr int64_t SHARE = 8192;  // columns of a block, as long as the cluster may grow

// What a thread moves at a time: 16 bytes where rows begin at multiples of 16 bytes, else 4.
template <int WIDTH>
struct alignas(4 * WIDTH) Pack {
    float v[WIDTH];
};

struct Partial {
    float top;    // the greatest value so far
    float total;  // the sum of exp(v - top)
};

static __device__ float finite_or_zero(float top) { return top == -INFINITY ? 0.0f : top; }

static __device__ Partial combine(Partial a, Partial b) {
    const float top = fmaxf(a.top, b.top), shift = finite_or_zero(top);
    return {top, a.total * expf(a.top - shift) + b.total * expf(b.top - shift)};
}

// Of all lanes, in every lane.
static __device__ Partial combine_warp(Partial mine) {
    for (int step = 16; step > 0; step /= 2)
        mine = combine(mine, {__shfl_xor_sync(~0u, mine.top, step), __shfl_xor_sync(~0u, mine.total, step)});
    return mine;
}

// Of all threads of the block, in the lanes of its first warp.
static __device__ Partial combine_block(Partial mine) {
    __shared__ Partial warps[MAX_THREADS / 32];
    mine = combine_warp(mine);
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = mine;
    __syncthreads();
    if (threadIdx.x >= 32) return mine;
    return combine_warp(threadIdx.x < blockDim.x / 32 ? warps[threadIdx.x] : Partial{-INFINITY, 0.0f});
}

template <int WIDTH, int KEPT>
static __global__ void __launch_bounds__(WARP_THREADS) warp_row(const float* x, float* y, int64_t rows, int cols) {
    const int64_t row = (int64_t(blockIdx.x) * WARP_THREADS + threadIdx.x) / 32;
    if (row >= rows) return;
    const auto from = reinterpret_cast<const Pack<WIDTH>*>(x + row * cols);
    const auto to = reinterpret_cast<Pack<WIDTH>*>(y + row * cols);
    const int lane = threadIdx.x % 32, packs = cols / WIDTH;

    Pack<WIDTH> kept[KEPT];  // in registers, since every loop over it is unrolled
#pragma unroll
    for (int i = 0; i < KEPT; ++i) {
        for (float& v : kept[i].v) v = -INFINITY;
        if (i * 32 + lane < packs) kept[i] = from[i * 32 + lane];
    }
    float top = -INFINITY, total = 0.0f;
#pragma unroll
    for (int i = 0; i < KEPT; ++i)
        for (const float v : kept[i].v) top = fmaxf(top, v);
    for (int step = 16; step > 0; step /= 2) top = fmaxf(top, __shfl_xor_sync(~0u, top, step));
    const float shift = finite_or_zero(top);
#pragma unroll
    for (int i = 0; i < KEPT; ++i)
        for (float& v : kept[i].v) total += v = expf(v - shift);
    for (int step = 16; step > 0; step /= 2) total += __shfl_xor_sync(~0u, total, step);
#pragma unroll
    for (int i = 0; i < KEPT; ++i) {
        for (float& v : kept[i].v) v /= total;
        if (i * 32 + lane < packs) to[i * 32 + lane] = kept[i];
    }
}

template <int WIDTH>
static __global__ void __launch_bounds__(MAX_THREADS)
shared_row(const float* x, float* y, int64_t cols, int64_t share) {
    extern __shared__ float4 memory[];  // as float4, for its alignment
    const auto kept = reinterpret_cast<Pack<WIDTH>*>(memory);
    __shared__ Partial blocks[MAX_CLUSTER];
#if __CUDA_ARCH__ >= 900
    const auto cluster = cooperative_groups::this_cluster();
    const unsigned size = cluster.num_blocks(), rank = cluster.block_rank();
    // Nobody may write into another block's memory before that block has begun. Waiting for it comes after the loads.
    auto begun = cluster.barrier_arrive();
#else
    constexpr unsigned size = 1, rank = 0;
#endif
    const int64_t first = min(rank * share, cols), start = blockIdx.x / size * cols + first;
    const auto from = reinterpret_cast<const Pack<WIDTH>*>(x + start);
    const auto to = reinterpret_cast<Pack<WIDTH>*>(y + start);
    const int packs = int(min(share, cols - first) / WIDTH);  // 0 for a block behind the row's end

    // All loads of a thread are under way at once, and take no registers. It reads back only what it loaded itself,
    // so that its own wait is enough, without a barrier.
    for (int i = threadIdx.x; i < packs; i += blockDim.x) __pipeline_memcpy_async(kept + i, from + i, sizeof *kept);
    __pipeline_commit();
    __pipeline_wait_prior(0);

    Partial mine = {-INFINITY, 0.0f};
    for (int i = threadIdx.x; i < packs; i += blockDim.x)
        for (const float v : kept[i].v) mine.top = fmaxf(mine.top, v);
    // One exp() an element: powers are kept relative to the thread's own maximum, and scaled when they are written.
    const float shift = finite_or_zero(mine.top);
    for (int i = threadIdx.x; i < packs; i += blockDim.x) {
        Pack<WIDTH> powers = kept[i];
        for (float& v : powers.v) mine.total += v = expf(v - shift);
        kept[i] = powers;
    }

    const Partial block = combine_block(mine);
#if __CUDA_ARCH__ >= 900
    cluster.barrier_wait(std::move(begun));
    if (threadIdx.x < size) *cluster.map_shared_rank(blocks + rank, threadIdx.x) = block;
    cluster.sync();
#else
    if (threadIdx.x == 0) blocks[0] = block;
    __syncthreads();
#endif
    Partial row = blocks[0];
    for (unsigned i = 1; i < size; ++i) row = combine(row, blocks[i]);

    const float scale = expf(mine.top - finite_or_zero(row.top)) / row.total;
    for (int i = threadIdx.x; i < packs; i += blockDim.x) {
        Pack<WIDTH> powers = kept[i];
        for (float& v : powers.v) v *= scale;
        to[i] = powers;
    }
}

static __global__ void __launch_bounds__(MAX_THREADS) row_twice(const float* x, float* y, int64_t cols) {
    x += blockIdx.x * cols;
    y += blockIdx.x * cols;
    Partial mine = {-INFINITY, 0.0f};
    for (int64_t i = threadIdx.x; i < cols; i += blockDim.x) mine = combine(mine, {x[i], 1.0f});
    __shared__ Partial row;
    const Partial block = combine_block(mine);
    if (threadIdx.x == 0) row = block;
    __syncthreads();
    const float shift = finite_or_zero(row.top), total = row.total;
    for (int64_t i = threadIdx.x; i < cols; i += blockDim.x) y[i] = expf(x[i] - shift) / total;
}

template <int WIDTH>
void launch(const float* x, float* y, int64_t rows, int64_t cols, cudaStream_t stream) {
    if (cols <= LONGEST_IN_WARP) {
        // Two sizes: a short row is not made to go through the steps of a long one.
        const auto kernel = cols <= 128 ? warp_row<WIDTH, 4 / WIDTH> : warp_row<WIDTH, 32 / WIDTH>;
        const unsigned grid = unsigned((rows * 32 + WARP_THREADS - 1) / WARP_THREADS);
        kernel<<<grid, WARP_THREADS, 0, stream>>>(x, y, rows, int(cols));
        return;
    }
    int device = 0, major = 0, capacity = 0;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
    cudaDeviceGetAttribute(&capacity, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
    int64_t size = 1;
    while (major >= 9 && size < MAX_CLUSTER && cols > size * SHARE) size *= 2;
    const int64_t share = ((cols + size - 1) / size + 3) / 4 * 4;  // whole packs
    const int64_t bytes = share * int64_t(sizeof(float));
    if (bytes + 1024 > capacity) {  // 1024: more than the pairs take
        row_twice<<<unsigned(rows), MAX_THREADS, 0, stream>>>(x, y, cols);
        return;
    }
    const int64_t threads = std::clamp<int64_t>((share + 1023) / 1024 * 32, 128, MAX_THREADS);  // 32 columns a thread
    cudaFuncSetAttribute(shared_row<WIDTH>, cudaFuncAttributeMaxDynamicSharedMemorySize, int(bytes));
    cudaLaunchAttribute cluster = {};
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim.x = unsigned(size);
    cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(unsigned(rows * size));
    config.blockDim = dim3(unsigned(threads));
    config.dynamicSmemBytes = size_t(bytes);
    config.stream = stream;
    config.attrs = &cluster;
    config.numAttrs = size > 1;
    cudaLaunchKernelEx(&config, shared_row<WIDTH>, x, y, cols, share);
}

// y = softmax of each row of x: [rows, cols] each, on the device, at addresses that are multiples of 16.
extern "C" void softmax(const float* x, float* y, int64_t rows, int64_t cols, cudaStream_t stream) {
    (cols % 4 == 0 ? launch<4> : launch<1>)(x, y, rows, cols, stream);
}
