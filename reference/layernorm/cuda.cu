// Layer normalization in CUDA: a warp or a block a row, which stays in registers between its sums and its output where it
// fits.
//
// Mean first, then the squares of what is left: the mean of the squares less the square of the mean would cancel. The sum
// itself is of differences from the row's first element, exact where all lie far from zero: of a thousand values of 1000
// a sum in float32 is off by more than the mean may be.
#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

template <typename T>
struct alignas(16) Vector {  // what one load of sixteen bytes brings
    static constexpr int SIZE = 16 / sizeof(T);
    T element[SIZE];
};

// The sum over the THREADS of a row, in every one of them. A warp needs no barrier for it.
template <int THREADS>
__device__ float block_sum(float value) {
    __shared__ float warps[THREADS / 32];
    for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(~0u, value, step);
    if (THREADS == 32) return value;
    __syncthreads();  // the last sum has been read by all
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = value;
    __syncthreads();
    float total = 0;
    for (int i = 0; i < THREADS / 32; ++i) total += warps[i];
    return total;
}

// Rows of up to THREADS × KEPT vectors, which begin at multiples of sixteen bytes: read once, written once. A block has
// ROWS of them, more than one only where a row belongs to a warp.
template <typename T, int THREADS, int KEPT, int ROWS = 1>
__global__ void __launch_bounds__(THREADS * ROWS)
row_kernel(const T* x, const T* weight, const T* bias, T* y, float eps, int64_t rows, int64_t cols) {
    static_assert(ROWS == 1 || THREADS == 32);
    constexpr int SIZE = Vector<T>::SIZE;
    const int64_t row = int64_t(blockIdx.x) * ROWS + (ROWS > 1 ? threadIdx.y : 0);
    if (row >= rows) return;
    const int vectors = int(cols / SIZE);
    const auto* from = reinterpret_cast<const Vector<T>*>(x + row * cols);
    auto* to = reinterpret_cast<Vector<T>*>(y + row * cols);
    const float first = float(x[row * cols]);
    Vector<T> kept[KEPT];
    float sum = 0;
#pragma unroll
    for (int i = 0; i < KEPT; ++i) {
        const int at = i * THREADS + threadIdx.x;
        if (at < vectors) kept[i] = from[at];
    }
#pragma unroll
    for (int i = 0; i < KEPT; ++i)
        if (i * THREADS + threadIdx.x < vectors)
            for (int j = 0; j < SIZE; ++j) sum += float(kept[i].element[j]) - first;
    const float mean = block_sum<THREADS>(sum) / cols;
    float squares = 0;
#pragma unroll
    for (int i = 0; i < KEPT; ++i)
        if (i * THREADS + threadIdx.x < vectors)
            for (int j = 0; j < SIZE; ++j) {
                const float centred = float(kept[i].element[j]) - first - mean;
                squares += centred * centred;
            }
    const float scale = rsqrtf(block_sum<THREADS>(squares) / cols + eps);
#pragma unroll
    for (int i = 0; i < KEPT; ++i) {
        const int at = i * THREADS + threadIdx.x;
        if (at >= vectors) break;
        const Vector<T> w = reinterpret_cast<const Vector<T>*>(weight)[at], b = reinterpret_cast<const Vector<T>*>(bias)[at];
        Vector<T> out;
        for (int j = 0; j < SIZE; ++j)
            out.element[j] = T((float(kept[i].element[j]) - first - mean) * scale * float(w.element[j]) + float(b.element[j]));
        to[at] = out;
    }
}

// Any row, read twice: the second time it comes from L2. Each thread has a running mean of its own elements and the sum
// of their squares about it (Welford 1962), so that one pass is enough for both.
template <typename T, int THREADS>
__global__ void __launch_bounds__(THREADS) long_row_kernel(const T* x, const T* weight, const T* bias, T* y, float eps, int64_t cols) {
    const T* from = x + blockIdx.x * cols;
    T* to = y + blockIdx.x * cols;
    const float first = float(from[0]);
    float mean = 0, squares = 0, count = 0;
#pragma unroll 4
    for (int64_t column = threadIdx.x; column < cols; column += THREADS) {
        const float value = float(from[column]) - first, step = value - mean;
        count += 1;
        mean += step / count;
        squares += step * (value - mean);
    }
    const float whole = block_sum<THREADS>(mean * count) / cols, off = mean - whole;
    const float scale = rsqrtf(block_sum<THREADS>(squares + count * off * off) / cols + eps);
    for (int64_t column = threadIdx.x; column < cols; column += THREADS)
        to[column] = T((float(from[column]) - first - whole) * scale * float(weight[column]) + float(bias[column]));
}

template <typename T>
void layernorm(const T* x, const T* weight, const T* bias, T* y, double eps, int64_t rows, int64_t cols, cudaStream_t stream) {
    const int64_t vectors = cols % Vector<T>::SIZE == 0 ? cols / Vector<T>::SIZE : INT64_MAX;
    const auto start = [=](auto kernel, int threads, int rows_a_block) {
        const unsigned blocks = unsigned((rows + rows_a_block - 1) / rows_a_block);
        kernel<<<blocks, dim3(threads, rows_a_block), 0, stream>>>(x, weight, bias, y, float(eps), rows, cols);
    };
    if (vectors <= 32) start(row_kernel<T, 32, 1, 4>, 32, 4);
    else if (vectors <= 128) start(row_kernel<T, 32, 4, 4>, 32, 4);
    else if (vectors <= 512) start(row_kernel<T, 128, 4>, 128, 1);
    else if (vectors <= 1024) start(row_kernel<T, 256, 4>, 256, 1);
    else if (vectors <= 4096) start(row_kernel<T, 1024, 4>, 1024, 1);
    else if (vectors <= 8192) start(row_kernel<T, 1024, 8>, 1024, 1);
    else long_row_kernel<T, 1024><<<unsigned(rows), 1024, 0, stream>>>(x, weight, bias, y, float(eps), cols);
}

#define ENTRY(NAME, TYPE)                                                                                              \
    extern "C" void NAME(const TYPE* x, const TYPE* weight, const TYPE* bias, TYPE* y, double eps, int64_t rows,       \
                         int64_t cols, cudaStream_t stream) {                                                          \
        layernorm(x, weight, bias, y, eps, rows, cols, stream);                                                        \
    }

ENTRY(layernorm_float32, float)
ENTRY(layernorm_float16, __half)
ENTRY(layernorm_bfloat16, __nv_bfloat16)
