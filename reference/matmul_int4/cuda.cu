// The product with int4 weights in CUDA, made for a single user and for small batches: each weight is read once, straight
// into the registers from which the matrix units take it. With a prompt's many tokens the weights are read anew for every
// 64 of them, and triton.py is the better one.
#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

constexpr int WARPS = 4, ROWS = 16, DEPTH = 128;  // a block takes 16 channels, and shares k out to its warps, in steps of 128

// (halves & 0x000F000F) ^ number in one instruction: 0x6A is the column of its table of truth. Left to itself the compiler
// takes two, since an instruction holds one constant; and these are what the kernel's time goes into.
__device__ unsigned masked(unsigned halves, unsigned number) {
    unsigned result;
    asm("lop3.b32 %0, %1, %2, %3, 0x6A;" : "=r"(result) : "r"(halves), "r"(0x000F000F), "r"(number));
    return result;
}

// Two numbers in a register, made of two halves of a byte: bits 0 to 3 and 16 to 19 of `halves`.
//
// Where a number's last bit of mantissa is worth 1, a half can be put there: 0x4308 is bfloat16's 136, and what is
// exclusive-or'ed into its last four bits makes it 128 + (half ^ 8), so 136 less is the signed half. float16: 1032.
__device__ unsigned wide(unsigned halves, __nv_bfloat16) {
    const unsigned bits = masked(halves, 0x43084308);
    const __nv_bfloat162 pair = __hsub2(reinterpret_cast<const __nv_bfloat162&>(bits), __bfloat162bfloat162(__float2bfloat16(136.0f)));
    return reinterpret_cast<const unsigned&>(pair);
}

__device__ unsigned wide(unsigned halves, __half) {
    const unsigned bits = masked(halves, 0x64086408);
    const __half2 pair = __hsub2(reinterpret_cast<const __half2&>(bits), __float2half2_rn(1032.0f));
    return reinterpret_cast<const unsigned&>(pair);
}

// c += a · b, of 16 × 16 and 16 × 8: PTX ISA, "Matrix Fragments for mma.m16n8k16 with floating point type". Lane 4g + t
// holds rows g and g + 8 of a, column g of b, and columns 2t and 2t + 1 of c.
//
// The order of k within a product is free as long as both operands have the same. A register of packed weights holds
// elements 0 to 7, whose halves 0 and 4, 1 and 5, 2 and 6, 3 and 7 become pairs with one shift each, so the tokens'
// elements are paired alike.
__device__ void multiply(float (&c)[4], unsigned a0, unsigned a1, unsigned a2, unsigned a3, unsigned b0, unsigned b1, __nv_bfloat16) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

__device__ void multiply(float (&c)[4], unsigned a0, unsigned a1, unsigned a2, unsigned a3, unsigned b0, unsigned b1, __half) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

// One token, two channels a warp; 128 divides k and the size of a group, and shared memory
// holds the token.
//
// The matrix units multiply 16 rows by 8 columns. One token would fill one column, and 16 rows are 16 places in memory.
// Here the rows are eight segments of 128 weights of one channel and eight of the next, which a warp reads as 512
// bytes in a row, and the columns are the token's eight segments. Of all products of segments with segments, those on
// the diagonal are wanted: of column g, rows g and g + 8.
constexpr int TOKEN_WARPS = 8, SEGMENTS = 8, AHEAD = 2;  // AHEAD: steps whose weights are on their way

template <typename T>
__global__ void __launch_bounds__(32 * TOKEN_WARPS) token_kernel(const T* __restrict__ x, const uint8_t* __restrict__ packed,
                                                                 const T* __restrict__ scale, T* __restrict__ y, int n, int k,
                                                                 int size) {
    extern __shared__ uint4 pairs[];  // of a step: element 8q of all lanes' stretches, q = 0 to 3, in pairs as the weights are
    const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    const int first = (blockIdx.x * TOKEN_WARPS + threadIdx.x / 32) * 2;
    const int64_t upper = min(first, n - 1), lower = min(first + 1, n - 1);
    const auto* row0 = reinterpret_cast<const uint4*>(packed + upper * (k / 2)) + lane;
    const auto* row1 = reinterpret_cast<const uint4*>(packed + lower * (k / 2)) + lane;
    const int steps = (k + DEPTH * SEGMENTS - 1) / (DEPTH * SEGMENTS), groups = k / size, shared = size / DEPTH;
    uint4 ahead0[AHEAD], ahead1[AHEAD];
    const auto fetch = [&](int step, uint4& words0, uint4& words1) {
        const bool inside = step * DEPTH * SEGMENTS + 32 * lane < k;
        words0 = inside ? __ldcs(row0 + 32 * step) : uint4{};
        words1 = inside ? __ldcs(row1 + 32 * step) : uint4{};
    };
#pragma unroll
    for (int i = 0; i < AHEAD; ++i) fetch(i, ahead0[i], ahead1[i]);
    for (int i = threadIdx.x; i < steps * 128; i += 32 * TOKEN_WARPS) {
        const uint4 v = 8 * i < k ? reinterpret_cast<const uint4*>(x)[i] : uint4{};
        pairs[i / 128 * 128 + i % 4 * 32 + i % 128 / 4] = {__byte_perm(v.x, v.z, 0x5410), __byte_perm(v.x, v.z, 0x7632),
                                                           __byte_perm(v.y, v.w, 0x5410), __byte_perm(v.y, v.w, 0x7632)};
    }
    __syncthreads();
    float total0 = 0, total1 = 0;
    for (int start = 0; start < steps; start += AHEAD) {
#pragma unroll
        for (int i = 0; i < AHEAD; ++i) {
            const int step = start + i;
            const unsigned word0[4] = {ahead0[i].x, ahead0[i].y, ahead0[i].z, ahead0[i].w};
            const unsigned word1[4] = {ahead1[i].x, ahead1[i].y, ahead1[i].z, ahead1[i].w};
            fetch(step + AHEAD, ahead0[i], ahead1[i]);
            if (step >= steps) break;
            float part[4] = {};
#pragma unroll
            for (int q = 0; q < 4; ++q) {
                const uint4 v = pairs[step * 128 + 32 * q + lane];
                unsigned a0[4], a1[4];
#pragma unroll
                for (int j = 0; j < 4; ++j) a0[j] = wide(word0[q] >> (4 * j), T()), a1[j] = wide(word1[q] >> (4 * j), T());
                multiply(part, a0[0], a1[0], a0[1], a1[1], v.x, v.y, T());
                multiply(part, a0[2], a1[2], a0[3], a1[3], v.z, v.w, T());
            }
            const int segment = step * SEGMENTS + g, group = min(shared == 1 ? segment : segment / shared, groups - 1);
            total0 += (g % 2 ? part[1] : part[0]) * float(scale[upper * groups + group]);
            total1 += (g % 2 ? part[3] : part[2]) * float(scale[lower * groups + group]);
        }
    }
    if (t != g / 2) total0 = total1 = 0;  // the lane holds columns 2t and 2t + 1: not the diagonal
    for (int other = 16; other > 0; other /= 2) {
        total0 += __shfl_xor_sync(~0u, total0, other);
        total1 += __shfl_xor_sync(~0u, total1, other);
    }
    if (lane == 0 && first < n) y[first] = T(total0);
    if (lane == 0 && first + 1 < n) y[first + 1] = T(total1);
}

// 16 channels by 8 · TILES tokens; 128 divides k and the size of a group.
template <typename T, int TILES>
__global__ void __launch_bounds__(32 * WARPS) tokens_kernel(const T* __restrict__ x, const uint8_t* __restrict__ packed,
                                                            const T* __restrict__ scale, T* __restrict__ y, int m, int n, int k,
                                                            int size) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane / 4, t = lane % 4;
    const int first = blockIdx.x * ROWS, token = blockIdx.y * 8 * TILES;
    // Beyond the last channel the last one is read again, and not written.
    const int64_t upper = min(first + g, n - 1), lower = min(first + g + 8, n - 1);
    const auto* rows0 = reinterpret_cast<const uint4*>(packed + upper * (k / 2)) + t;
    const auto* rows1 = reinterpret_cast<const uint4*>(packed + lower * (k / 2)) + t;
    const int groups = k / size, shared = size / DEPTH;  // steps that have one scale
    float total[TILES][4] = {};
    // A warp takes a stretch of its own, so that whole lines of memory are read.
    const int each = (k / DEPTH + WARPS - 1) / WARPS, begin = warp * each, end = min(begin + each, k / DEPTH);
#pragma unroll 4
    for (int step = begin; step < end; ++step) {
        const uint4 words0 = __ldcs(rows0 + 4 * step), words1 = __ldcs(rows1 + 4 * step);
        const int group = shared == 1 ? step : step / shared;
        const float scale0 = float(scale[upper * groups + group]), scale1 = float(scale[lower * groups + group]);
        const unsigned word0[4] = {words0.x, words0.y, words0.z, words0.w}, word1[4] = {words1.x, words1.y, words1.z, words1.w};
        float part[TILES][4] = {};
#pragma unroll
        for (int q = 0; q < 4; ++q) {
            unsigned a0[4], a1[4];
#pragma unroll
            for (int i = 0; i < 4; ++i) a0[i] = wide(word0[q] >> (4 * i), T()), a1[i] = wide(word1[q] >> (4 * i), T());
#pragma unroll
            for (int j = 0; j < TILES; ++j) {
                uint4 v = {};
                if (token + 8 * j + g < m)
                    v = *reinterpret_cast<const uint4*>(x + (token + 8 * j + g) * int64_t(k) + step * DEPTH + 32 * t + 8 * q);
                multiply(part[j], a0[0], a1[0], a0[1], a1[1], __byte_perm(v.x, v.z, 0x5410), __byte_perm(v.x, v.z, 0x7632), T());
                multiply(part[j], a0[2], a1[2], a0[3], a1[3], __byte_perm(v.y, v.w, 0x5410), __byte_perm(v.y, v.w, 0x7632), T());
            }
        }
#pragma unroll
        for (int j = 0; j < TILES; ++j)
            for (int i = 0; i < 4; ++i) total[j][i] += part[j][i] * (i < 2 ? scale0 : scale1);
    }
    __shared__ float sums[WARPS][8 * TILES][ROWS];
#pragma unroll
    for (int j = 0; j < TILES; ++j)
        for (int i = 0; i < 4; ++i) sums[warp][8 * j + 2 * t + i % 2][g + 8 * (i / 2)] = total[j][i];
    __syncthreads();
    for (int i = threadIdx.x; i < 8 * TILES * ROWS; i += 32 * WARPS) {
        const int column = i / ROWS, row = i % ROWS;
        float sum = 0;
        for (int w = 0; w < WARPS; ++w) sum += sums[w][column][row];
        if (token + column < m && first + row < n) y[(token + column) * int64_t(n) + first + row] = T(sum);
    }
}

// Any sizes: a thread an output.
template <typename T>
__global__ void plain_kernel(const T* x, const uint8_t* packed, const T* scale, T* y, int64_t m, int64_t n, int64_t k, int64_t size) {
    const int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x, token = i / n, channel = i % n;
    if (token >= m) return;
    float total = 0;
    for (int64_t byte = 0; byte < k / 2; ++byte) {
        const unsigned both = packed[channel * (k / 2) + byte];
        const float factor = float(scale[channel * (k / size) + 2 * byte / size]);
        total += float(int(both & 0xFu ^ 8u) - 8) * factor * float(x[token * k + 2 * byte]);
        total += float(int(both >> 4 ^ 8u) - 8) * factor * float(x[token * k + 2 * byte + 1]);
    }
    y[i] = T(total);
}

template <typename T>
void matmul(const T* x, const uint8_t* packed, const T* scale, T* y, int64_t m, int64_t n, int64_t k, int64_t size, cudaStream_t stream) {
    const auto blocks = [](int64_t of, int64_t each) { return unsigned((of + each - 1) / each); };
    if (k % DEPTH != 0 || size % DEPTH != 0)
        plain_kernel<<<blocks(m * n, 128), 128, 0, stream>>>(x, packed, scale, y, m, n, k, size);
    else if (m == 1 && k <= 24576)  // 48 KiB of shared memory
        token_kernel<T><<<blocks(n, 2 * TOKEN_WARPS), 32 * TOKEN_WARPS, blocks(k, DEPTH * SEGMENTS) * 2048, stream>>>(
            x, packed, scale, y, n, k, size);
    else if (m <= 8)
        tokens_kernel<T, 1><<<dim3(blocks(n, ROWS), 1), 32 * WARPS, 0, stream>>>(x, packed, scale, y, m, n, k, size);
    else if (m <= 16)
        tokens_kernel<T, 2><<<dim3(blocks(n, ROWS), 1), 32 * WARPS, 0, stream>>>(x, packed, scale, y, m, n, k, size);
    else
        tokens_kernel<T, 8><<<dim3(blocks(n, ROWS), blocks(m, 64)), 32 * WARPS, 0, stream>>>(x, packed, scale, y, m, n, k, size);
}

extern "C" void matmul_int4_bfloat16(const __nv_bfloat16* x, const uint8_t* packed, const __nv_bfloat16* scale, __nv_bfloat16* y,
                                     int64_t m, int64_t n, int64_t k, int64_t size, cudaStream_t stream) {
    matmul(x, packed, scale, y, m, n, k, size, stream);
}

extern "C" void matmul_int4_float16(const __half* x, const uint8_t* packed, const __half* scale, __half* y, int64_t m, int64_t n,
                                    int64_t k, int64_t size, cudaStream_t stream) {
    matmul(x, packed, scale, y, m, n, k, size, stream);
}
