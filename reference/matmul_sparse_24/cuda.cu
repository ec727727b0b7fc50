// The product with 2:4 sparse weights in CUDA, on the sparse matrix units: mma.sp multiplies 16 channels × 32 columns
// of weights, of which it is given the 16 × 16 that were kept and their indices, by 32 × 8 of x. So weights stand left,
// and a block computes a tile of y transposed, which it turns on the way out.
//
// The format of the problem is what the instruction takes: 4 bits a group of four columns, the lower index in the lower
// bits, groups in ascending order. Only the order of 16-bit pieces among threads is left to do.
//
// Tiles come in by cp.async, several stages ahead. Where there are few tokens, the time is that of reading the weights
// once: then tiles are narrow, so that every multiprocessor has one, and the warps of a block share k.
#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <type_traits>

constexpr int WARPS = 8, THREADS = 32 * WARPS, STAGES = 4;

// `bytes` from global to shared memory, past the registers; where `known` is false, zeros.
template <int BYTES>
__device__ void copy(void* to, const void* from, bool known) {
    const unsigned at = unsigned(__cvta_generic_to_shared(to));
    if constexpr (BYTES == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(from), "r"(known ? BYTES : 0)
                     : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(at), "l"(from), "r"(known ? BYTES : 0)
                     : "memory");
}

// Four 8 × 8 matrices of 16-bit elements; lane l names row l % 8 of matrix l / 8, and is given, of each matrix, the two
// elements 2 · (l % 4) of row l / 4.
__device__ void load_matrices(unsigned (&to)[4], const void* row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(unsigned(__cvta_generic_to_shared(row)))
                 : "memory");
}

// `ordered_metadata` promises that indices ascend, as they do here. The last operand says which two threads of each
// four hold the indices: 0 the first two, 1 the last two. It must be a constant.
#define MMA(TYPE, PAIR)                                                                                                \
    asm volatile("mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32." TYPE "." TYPE ".f32 "                   \
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9, %10, %11}, {%0, %1, %2, %3}, %12, " PAIR ";"            \
                 : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])                                              \
                 : "r"(w[0]), "r"(w[1]), "r"(w[2]), "r"(w[3]), "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(places))

template <typename T, int PAIR>
__device__ void multiply(float (&sum)[4], const unsigned (&w)[4], const unsigned (&x)[4], unsigned places) {
    if constexpr (std::is_same_v<T, __nv_bfloat16>) {
        if constexpr (PAIR == 0) MMA("bf16", "0x0");
        else MMA("bf16", "0x1");
    } else {
        if constexpr (PAIR == 0) MMA("f16", "0x0");
        else MMA("f16", "0x1");
    }
}

// Where a chunk of 16 bytes lies in a tile of CHUNKS chunks a row. Eight rows' chunks of one number, which ldmatrix
// reads together, lie in different banks.
template <int CHUNKS>
__device__ int place(int row, int chunk) {
    return row * CHUNKS + (CHUNKS >= 8 ? chunk ^ (row & 7) : chunk ^ (row / (8 / CHUNKS) & (CHUNKS - 1)));
}

// One stage: DEPTH columns of a tile's tokens, weights and indices.
template <int CHANNELS, int TOKENS, int DEPTH>
struct Stage {
    uint4 x[TOKENS * DEPTH / 8];
    uint4 values[CHANNELS * DEPTH / 16];
    alignas(16) uint8_t indices[CHANNELS * DEPTH / 8];
};

// WARPS = CHANNELS / 32 along the channels × ALONG_TOKENS × what remains, which share the columns of a stage.
// WHOLE: k is a multiple of DEPTH, so that all rows are aligned and no stage has a tail.
template <typename T, int CHANNELS, int TOKENS, int DEPTH, int ALONG_TOKENS, bool WHOLE>
__global__ void __launch_bounds__(THREADS, 2)
tile_kernel(const T* x, const T* values, const uint8_t* indices, T* y, int64_t m, int64_t n, int64_t k) {
    constexpr int ALONG_CHANNELS = CHANNELS / 32, ALONG_K = WARPS / ALONG_CHANNELS / ALONG_TOKENS;
    constexpr int EIGHTS = TOKENS / ALONG_TOKENS / 8;  // of tokens in a warp
    using Tile = Stage<CHANNELS, TOKENS, DEPTH>;
    extern __shared__ __align__(128) uint8_t memory[];
    Tile* stages = reinterpret_cast<Tile*>(memory);

    const int64_t first_token = int64_t(blockIdx.x) * TOKENS, first_channel = int64_t(blockIdx.y) * CHANNELS;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int channel = warp % ALONG_CHANNELS * 32;
    const int token = warp / ALONG_CHANNELS % ALONG_TOKENS * (8 * EIGHTS);
    const int share = warp / ALONG_CHANNELS / ALONG_TOKENS;
    const int64_t steps = (k + DEPTH - 1) / DEPTH;

    // Rows beyond the last are read as the last, and their results are not stored.
    const auto fetch = [&](int64_t step) {
        Tile& to = stages[step % STAGES];
        const int64_t first = step * DEPTH;
        for (int i = threadIdx.x; i < TOKENS * (DEPTH / 8); i += THREADS) {
            const int row = i / (DEPTH / 8), chunk = i % (DEPTH / 8);
            const int64_t from = min(first_token + row, m - 1) * k, column = first + 8 * chunk;
            const bool known = WHOLE || column < k;
            copy<16>(&to.x[place<DEPTH / 8>(row, chunk)], x + from + (known ? column : 0), known);
        }
        // A row of k / 2 values begins at a multiple of 16 bytes only if k is one of 16.
        constexpr int EACH = WHOLE ? 8 : 4;
        for (int i = threadIdx.x; i < CHANNELS * (DEPTH / 2 / EACH); i += THREADS) {
            const int row = i / (DEPTH / 2 / EACH), value = i % (DEPTH / 2 / EACH) * EACH;
            const int64_t from = min(first_channel + row, n - 1) * (k / 2), column = first / 2 + value;
            const bool known = WHOLE || column < k / 2;
            T* at = reinterpret_cast<T*>(&to.values[place<DEPTH / 16>(row, value / 8)]) + value % 8;
            copy<2 * EACH>(at, values + from + (known ? column : 0), known);
        }
        constexpr int BYTES = WHOLE ? 8 : 1;
        for (int i = threadIdx.x; i < CHANNELS * (DEPTH / 8 / BYTES); i += THREADS) {
            const int row = i / (DEPTH / 8 / BYTES), byte = i % (DEPTH / 8 / BYTES) * BYTES;
            const int64_t from = min(first_channel + row, n - 1) * (k / 8), column = first / 8 + byte;
            uint8_t* at = to.indices + row * (DEPTH / 8) + byte;
            if constexpr (WHOLE) copy<8>(at, indices + from + column, true);
            else *at = column < k / 8 ? indices[from + column] : 0x44;  // 0 would be no pair of indices
        }
    };

    float sum[2][EIGHTS][4] = {};
    for (int i = 0; i < STAGES - 1; ++i) {
        if (i < steps) fetch(i);
        asm volatile("cp.async.commit_group;" ::: "memory");
    }
    for (int64_t step = 0; step < steps; ++step) {
        asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2) : "memory");
        __syncthreads();  // this stage has come for all threads, and all are done with the one before it
        if (step + STAGES - 1 < steps) fetch(step + STAGES - 1);
        asm volatile("cp.async.commit_group;" ::: "memory");  // an empty one at the end, which keeps the count

        const Tile& tile = stages[step % STAGES];
#pragma unroll
        for (int part = share; part < DEPTH / 32; part += ALONG_K) {
            // 16 bits of indices are 16 columns of a channel. Of the four threads of a group the first has columns
            // 0-15 of channels c and c + 8 in its lower and upper half, the second columns 16-31; the other two have
            // the same for the next 16 channels.
            const int c = channel + lane % 4 / 2 * 16 + lane / 4, at = 4 * part + lane % 2 * 2;
            const unsigned places = *reinterpret_cast<const uint16_t*>(tile.indices + c * (DEPTH / 8) + at) |
                unsigned(*reinterpret_cast<const uint16_t*>(tile.indices + (c + 8) * (DEPTH / 8) + at)) << 16;
            unsigned w[2][4];
#pragma unroll
            for (int i = 0; i < 2; ++i)
                load_matrices(w[i],
                              &tile.values[place<DEPTH / 16>(channel + 16 * i + lane % 16, 2 * part + lane / 16)]);
#pragma unroll
            for (int j = 0; j < EIGHTS; ++j) {
                unsigned right[4];
                load_matrices(right, &tile.x[place<DEPTH / 8>(token + 8 * j + lane % 8, 4 * part + lane / 8)]);
                multiply<T, 0>(sum[0][j], w[0], right, places);
                multiply<T, 1>(sum[1][j], w[1], right, places);
            }
        }
    }

    // Sums go through shared memory, so that neighbouring threads store neighbouring channels, and what warps have that
    // shared k is added up in a fixed order. Four floats more a row: the lanes of a warp write to different banks.
    asm volatile("cp.async.wait_group 0;" ::: "memory");
    __syncthreads();
    constexpr int PITCH = CHANNELS + 4;
    static_assert(ALONG_K * TOKENS * PITCH * sizeof(float) <= STAGES * sizeof(Tile), "sums fit where the stages were");
    float* sums = reinterpret_cast<float*>(memory);
    for (int i = 0; i < 2; ++i)
        for (int j = 0; j < EIGHTS; ++j)
            for (int e = 0; e < 4; ++e) {
                const int row = token + 8 * j + lane % 4 * 2 + e % 2, column = channel + 16 * i + lane / 4 + e / 2 * 8;
                sums[(share * TOKENS + row) * PITCH + column] = sum[i][j][e];
            }
    __syncthreads();
    for (int i = threadIdx.x; i < TOKENS * CHANNELS; i += THREADS) {
        const int row = i / CHANNELS, column = i % CHANNELS;
        float total = 0;
        for (int s = 0; s < ALONG_K; ++s) total += sums[(s * TOKENS + row) * PITCH + column];
        if (first_token + row < m && first_channel + column < n)
            y[(first_token + row) * n + first_channel + column] = T(total);
    }
}

template <typename T, int CHANNELS, int TOKENS, int DEPTH, int ALONG_TOKENS, bool WHOLE>
void launch(const T* x, const T* values, const uint8_t* indices, T* y, int64_t m, int64_t n, int64_t k,
            cudaStream_t stream) {
    constexpr int shared = STAGES * sizeof(Stage<CHANNELS, TOKENS, DEPTH>);
    const auto kernel = tile_kernel<T, CHANNELS, TOKENS, DEPTH, ALONG_TOKENS, WHOLE>;
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared);
    const dim3 blocks(unsigned((m + TOKENS - 1) / TOKENS), unsigned((n + CHANNELS - 1) / CHANNELS));
    kernel<<<blocks, THREADS, shared, stream>>>(x, values, indices, y, m, n, k);
}

template <typename T>
void matmul(const T* x, const T* values, const uint8_t* indices, T* y, int64_t m, int64_t n, int64_t k,
            cudaStream_t stream) {
    if (m <= 16) {
        if (k % 256 == 0) launch<T, 32, 16, 256, 1, true>(x, values, indices, y, m, n, k, stream);
        else launch<T, 32, 16, 256, 1, false>(x, values, indices, y, m, n, k, stream);
    } else {
        if (k % 64 == 0) launch<T, 128, 128, 64, 2, true>(x, values, indices, y, m, n, k, stream);
        else launch<T, 128, 128, 64, 2, false>(x, values, indices, y, m, n, k, stream);
    }
}

extern "C" void matmul_sparse_24_bfloat16(const __nv_bfloat16* x, const __nv_bfloat16* values, const uint8_t* indices,
                                          __nv_bfloat16* y, int64_t m, int64_t n, int64_t k, cudaStream_t stream) {
    matmul(x, values, indices, y, m, n, k, stream);
}

extern "C" void matmul_sparse_24_float16(const __half* x, const __half* values, const uint8_t* indices, __half* y,
                                         int64_t m, int64_t n, int64_t k, cudaStream_t stream) {
    matmul(x, values, indices, y, m, n, k, stream);
}
