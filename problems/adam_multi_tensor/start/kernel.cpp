// adam_multi_tensor in C++: it builds, and is wrong until `adam_multi_tensor` is filled in.
#include <cstdint>

// params   count × [width ** (2 - index % 3) * (1 + index // 3 % 4)]  float32  inout
// grads    count × [width ** (2 - index % 3) * (1 + index // 3 % 4)]  float32  input
// means    count × [width ** (2 - index % 3) * (1 + index // 3 % 4)]  float32  inout
// squares  count × [width ** (2 - index % 3) * (1 + index // 3 % 4)]  float32  inout

static int64_t integer_power(int64_t base, int64_t exponent) {
    int64_t result = 1;
    while (exponent-- > 0) result *= base;
    return result;
}

extern "C" void adam_multi_tensor(
    float* const* params, const float* const* grads, float* const* means, float* const* squares, double rate,
    double beta1, double beta2, double eps, double weight_decay, int64_t step, int64_t count, int64_t width,
    int64_t updates
) {
    // TODO: compute the outputs. These loops visit every element, in row-major order.
    for (int64_t index = 0; index < count; ++index) {
        for (int64_t i = 0; i < integer_power(width, 2 - index % 3) * (1 + index / 3 % 4); ++i) params[index][i] = params[index][i];
        for (int64_t i = 0; i < integer_power(width, 2 - index % 3) * (1 + index / 3 % 4); ++i) means[index][i] = means[index][i];
        for (int64_t i = 0; i < integer_power(width, 2 - index % 3) * (1 + index / 3 % 4); ++i) squares[index][i] = squares[index][i];
    }
}
