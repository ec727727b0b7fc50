// Row-wise softmax in CUDA: one block of threads a row, any number of columns.
//
// A thread keeps the maximum and the sum of exp(v - maximum) over its own columns, in one pass; the block combines them,
// and a second pass writes. Where every element is -inf there is no finite maximum: 0 is subtracted instead, the sum
// is 0, and 0/0 gives the NaN that the definition asks for.

#include <cmath>
#include <cstdint>
#include <cuda_runtime.h>

constexpr int threads = 256;

struct Partial {
    float top;    // the greatest value so far
    float total;  // the sum of exp(v - top)
};

static __device__ float finite_or_zero(float top) { return top == -INFINITY ? 0.0f : top; }

static __device__ Partial combine(Partial a, Partial b) {
    const float top = fmaxf(a.top, b.top), shift = finite_or_zero(top);
    return {top, a.total * expf(a.top - shift) + b.total * expf(b.top - shift)};
}

static __global__ void __launch_bounds__(threads) softmax_row(const float* x, float* y, int64_t cols) {
    x += blockIdx.x * cols;
    y += blockIdx.x * cols;
    Partial mine = {-INFINITY, 0.0f};
    for (int64_t i = threadIdx.x; i < cols; i += threads) mine = combine(mine, {x[i], 1.0f});

    __shared__ Partial partials[threads];
    partials[threadIdx.x] = mine;
    for (int half = threads / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half)
            partials[threadIdx.x] = combine(partials[threadIdx.x], partials[threadIdx.x + half]);
    }
    __syncthreads();
    const float shift = finite_or_zero(partials[0].top), total = partials[0].total;
    for (int64_t i = threadIdx.x; i < cols; i += threads) y[i] = expf(x[i] - shift) / total;
}

// y = softmax of each row of x: [rows, cols] each, on the device.
extern "C" void softmax(const float* x, float* y, int64_t rows, int64_t cols, cudaStream_t stream) {
    softmax_row<<<unsigned(rows), threads, 0, stream>>>(x, y, cols);
}
