// adam_multi_tensor in CUDA: it builds, and is wrong until `compute` is filled in.
#include <cstdint>
#include <cuda_runtime.h>

// params   count × [width ** (2 - index % 3) * (1 + index // 3 % 4)]  float32  inout
// grads    count × [width ** (2 - index % 3) * (1 + index // 3 % 4)]  float32  input
// means    count × [width ** (2 - index % 3) * (1 + index // 3 % 4)]  float32  inout
// squares  count × [width ** (2 - index % 3) * (1 + index // 3 % 4)]  float32  inout

static __host__ __device__ int64_t integer_power(int64_t base, int64_t exponent) {
    int64_t result = 1;
    while (exponent-- > 0) result *= base;
    return result;
}

static __global__ void compute(
    float* params, const float* grads, float* means, float* squares, double rate, double beta1, double beta2,
    double eps, double weight_decay, int64_t step, int64_t count, int64_t width, int64_t updates, int64_t index
) {
    const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    // TODO: compute the outputs. There is a thread for every element, in row-major order.
    if (i < integer_power(width, 2 - index % 3) * (1 + index / 3 % 4)) params[i] = params[i];
    if (i < integer_power(width, 2 - index % 3) * (1 + index / 3 % 4)) means[i] = means[i];
    if (i < integer_power(width, 2 - index % 3) * (1 + index / 3 % 4)) squares[i] = squares[i];
}

extern "C" void adam_multi_tensor(
    float* const* params, const float* const* grads, float* const* means, float* const* squares, double rate,
    double beta1, double beta2, double eps, double weight_decay, int64_t step, int64_t count, int64_t width,
    int64_t updates, cudaStream_t stream
) {
    for (int64_t index = 0; index < count; ++index) {
        const int64_t elements = integer_power(width, 2 - index % 3) * (1 + index / 3 % 4);
        if (elements > 0)
            compute<<<unsigned((elements + 255) / 256), 256, 0, stream>>>(
                params[index], grads[index], means[index], squares[index], rate, beta1, beta2, eps, weight_decay, step,
                count, width, updates, index
            );
    }
}
