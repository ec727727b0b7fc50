// int4 unpacked in CUDA: four bytes become eight numbers, which leave in one store of sixteen bytes.
#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

// EACH: loads of a thread, all in flight before the first number is written. With blocks of 256 threads large tensors take
// 3 % longer.
constexpr int THREADS = 64, EACH = 4;

// The signed half of a byte less a zero point, times a scale.
//
// The half becomes the low end of the mantissa of 2²³, from which 2²³ + 8 goes; `offset` is that and the zero point. A
// conversion from integers runs at an eighth of the rate of the subtraction, and would take as long as the memory.
__device__ float number(unsigned half, float offset, float scale) {
    return (__uint_as_float((half & 0xFu) ^ 0x4B000008) - offset) * scale;
}

// `count` words of four bytes; a group is a multiple of `per_group` words.
template <typename T>
__global__ void words_kernel(const unsigned* packed, const T* scale, const int8_t* zero, uint4* y, int64_t count, unsigned per_group) {
    const int64_t first = blockIdx.x * int64_t(THREADS * EACH) + threadIdx.x;
    unsigned words[EACH];
#pragma unroll
    for (int i = 0; i < EACH; ++i)
        if (first + i * THREADS < count) words[i] = __ldcs(packed + first + i * THREADS);
#pragma unroll
    for (int i = 0; i < EACH; ++i) {
        const int64_t at = first + i * THREADS;
        if (at >= count) break;
        // Groups follow each other without gaps, so the group is a division away, whatever the row.
        const int64_t group = count <= UINT32_MAX ? unsigned(at) / per_group : at / per_group;
        const float factor = float(scale[group]), offset = float(zero[group]) + 8388616.0f;
        T values[8];
#pragma unroll
        for (int j = 0; j < 8; ++j) values[j] = T(number(words[i] >> (4 * j), offset, factor));
        __stcs(y + at, *reinterpret_cast<uint4*>(values));
    }
}

// The same byte by byte, for groups that are no multiple of four bytes.
template <typename T>
__global__ void bytes_kernel(const uint8_t* packed, const T* scale, const int8_t* zero, T* y, int64_t count, unsigned per_group) {
    const int64_t i = blockIdx.x * int64_t(THREADS) + threadIdx.x;
    if (i >= count) return;
    const int64_t group = i / per_group;
    const float factor = float(scale[group]), offset = float(zero[group]) + 8388616.0f;
    y[2 * i] = T(number(packed[i], offset, factor));
    y[2 * i + 1] = T(number(packed[i] >> 4, offset, factor));
}

template <typename T>
void unpack(const uint8_t* packed, const T* scale, const int8_t* zero, T* y, int64_t rows, int64_t groups, int64_t size,
            cudaStream_t stream) {
    const int64_t nbytes = rows * groups * size / 2;
    const auto blocks = [](int64_t of, int64_t each) { return unsigned((of + each - 1) / each); };
    if (size % 8 == 0)
        words_kernel<<<blocks(nbytes / 4, THREADS * EACH), THREADS, 0, stream>>>(
            reinterpret_cast<const unsigned*>(packed), scale, zero, reinterpret_cast<uint4*>(y), nbytes / 4, unsigned(size / 8));
    else
        bytes_kernel<<<blocks(nbytes, THREADS), THREADS, 0, stream>>>(packed, scale, zero, y, nbytes, unsigned(size / 2));
}

extern "C" void unpack_int4_float16(const uint8_t* packed, const __half* scale, const int8_t* zero, __half* y, int64_t rows,
                                    int64_t groups, int64_t size, cudaStream_t stream) {
    unpack(packed, scale, zero, y, rows, groups, size, stream);
}

extern "C" void unpack_int4_bfloat16(const uint8_t* packed, const __nv_bfloat16* scale, const int8_t* zero, __nv_bfloat16* y,
                                     int64_t rows, int64_t groups, int64_t size, cudaStream_t stream) {
    unpack(packed, scale, zero, y, rows, groups, size, stream);
}
