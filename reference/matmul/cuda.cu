// Matrix multiplication in CUDA: a block computes a tile of 64 × 64, each of its 256 threads 4 × 4 elements of it.
//
// Strips of a and b pass through shared memory, so that each element is read from there 64 times and from global memory
// once a block. Sums are float32 for every dtype. The matrix units are not used: this is the plain baseline.

#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

constexpr int tile = 64, strip = 16, each = 4, side = tile / each;

template <typename T>
static __global__ void __launch_bounds__(side * side) multiply(const T* a, const T* b, T* c, int64_t m, int64_t n, int64_t k) {
    // One column more than the tile: threads that store a column of `left` then hit different banks.
    __shared__ float left[strip][tile + 1], right[strip][tile];
    const int64_t top = int64_t(blockIdx.x) * tile, start = int64_t(blockIdx.y) * tile;
    const int row = threadIdx.x / side, column = threadIdx.x % side;
    float sum[each][each] = {};

    for (int64_t along = 0; along < k; along += strip) {
        for (int i = threadIdx.x; i < tile * strip; i += side * side) {
            // Neighbouring threads read neighbouring elements. Outside the matrices stands 0.
            const int64_t ak = along + i % strip, am = top + i / strip;
            left[i % strip][i / strip] = am < m && ak < k ? float(a[am * k + ak]) : 0.0f;
            const int64_t bk = along + i / tile, bn = start + i % tile;
            right[i / tile][i % tile] = bk < k && bn < n ? float(b[bk * n + bn]) : 0.0f;
        }
        __syncthreads();
        for (int s = 0; s < strip; ++s)
            for (int i = 0; i < each; ++i)
                for (int j = 0; j < each; ++j) sum[i][j] += left[s][row + i * side] * right[s][column + j * side];
        __syncthreads();
    }
    for (int i = 0; i < each; ++i)
        for (int j = 0; j < each; ++j) {
            const int64_t cm = top + row + i * side, cn = start + column + j * side;
            if (cm < m && cn < n) c[cm * n + cn] = T(sum[i][j]);
        }
}

template <typename T>
void launch(const T* a, const T* b, T* c, int64_t m, int64_t n, int64_t k, cudaStream_t stream) {
    const dim3 grid(unsigned((m + tile - 1) / tile), unsigned((n + tile - 1) / tile));
    multiply<<<grid, side * side, 0, stream>>>(a, b, c, m, n, k);
}

// c = a · b: [m, k], [k, n], [m, n], row-major, on the device. One symbol for each dtype of the problem.
extern "C" void matmul_float32(const float* a, const float* b, float* c, int64_t m, int64_t n, int64_t k,
                               cudaStream_t stream) {
    launch(a, b, c, m, n, k, stream);
}

extern "C" void matmul_float16(const __half* a, const __half* b, __half* c, int64_t m, int64_t n, int64_t k,
                               cudaStream_t stream) {
    launch(a, b, c, m, n, k, stream);
}

extern "C" void matmul_bfloat16(const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat16* c, int64_t m, int64_t n,
                                int64_t k, cudaStream_t stream) {
    launch(a, b, c, m, n, k, stream);
}
