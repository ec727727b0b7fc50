// int4 unpacked in CUDA: four bytes become eight numbers, which leave in one store of sixteen bytes.
#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

constexpr int THREADS = 256;

__device__ float number(unsigned half) { return float(int(half ^ 8u) - 8); }  // 15 becomes -1

template <typename T>
__device__ T unpacked(unsigned half, float zero, float scale) {
    return T((number(half) - zero) * scale);
}

// `width`: bytes that a thread takes at once, 4 or 1; a group is a multiple of it.
template <typename T, int WIDTH>
__global__ void unpack_kernel(const uint8_t* packed, const T* scale, const int8_t* zero, T* y, int64_t count, unsigned per_group) {
    const int64_t i = blockIdx.x * int64_t(THREADS) + threadIdx.x;
    if (i >= count) return;
    // Groups follow each other without gaps, so the group is a division away, whatever the row.
    const int64_t group = i / per_group;
    const float factor = float(scale[group]), offset = float(zero[group]);
    if (WIDTH == 4) {
        const unsigned bytes = reinterpret_cast<const unsigned*>(packed)[i];
        T values[8];
#pragma unroll
        for (int j = 0; j < 8; ++j) values[j] = unpacked<T>(bytes >> (4 * j) & 0xFu, offset, factor);
        reinterpret_cast<uint4*>(y)[i] = *reinterpret_cast<uint4*>(values);
    } else {
        const unsigned byte = packed[i];
        y[2 * i] = unpacked<T>(byte & 0xFu, offset, factor);
        y[2 * i + 1] = unpacked<T>(byte >> 4, offset, factor);
    }
}

template <typename T>
void unpack(const uint8_t* packed, const T* scale, const int8_t* zero, T* y, int64_t rows, int64_t groups, int64_t size,
            cudaStream_t stream) {
    const int64_t nbytes = rows * groups * size / 2;
    if (size % 8 == 0) {
        const int64_t count = nbytes / 4;
        unpack_kernel<T, 4><<<unsigned((count + THREADS - 1) / THREADS), THREADS, 0, stream>>>(packed, scale, zero, y, count, size / 8);
    } else {
        unpack_kernel<T, 1><<<unsigned((nbytes + THREADS - 1) / THREADS), THREADS, 0, stream>>>(packed, scale, zero, y, nbytes, size / 2);
    }
}

extern "C" void unpack_int4_float16(const uint8_t* packed, const __half* scale, const int8_t* zero, __half* y, int64_t rows,
                                    int64_t groups, int64_t size, cudaStream_t stream) {
    unpack(packed, scale, zero, y, rows, groups, size, stream);
}

extern "C" void unpack_int4_bfloat16(const uint8_t* packed, const __nv_bfloat16* scale, const int8_t* zero, __nv_bfloat16* y,
                                     int64_t rows, int64_t groups, int64_t size, cudaStream_t stream) {
    unpack(packed, scale, zero, y, rows, groups, size, stream);
}
