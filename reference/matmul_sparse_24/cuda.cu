// The product with 2:4 sparse weights in CUDA, on the sparse matrix units, which are given the weights that were kept
// and their indices. They want weights on the left, so a block computes a tile of y transposed, which it turns on the
// way out.
//
// The format of the problem is what the instructions take: 4 bits a group of four columns, the lower index in the lower
// bits, groups in ascending order. Only the order of 16-bit pieces among threads is left to do.
//
// There are two kernels: the first, of mma.sp, for all sizes, and the second, of wgmma, for many tokens. Only wgmma has
// the full rate of Hopper, and only Hopper has wgmma.
#include <cstdint>
#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <type_traits>

// mma.sp: a warp multiplies 16 channels × 32 columns of weights by 32 × 8 of x. Tiles come in by cp.async, several
// stages ahead. Where there are few tokens, the time is that of reading the weights once: then tiles are narrow, so
// that every multiprocessor has one, and the warps of a block share k.
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
// four hold the indices: 0 the first two, 1 the last two.
#define MMA(TYPE)                                                                                                      \
    asm volatile("mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32." TYPE "." TYPE ".f32 "                   \
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9, %10, %11}, {%0, %1, %2, %3}, %12, %13;"                 \
                 : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])                                              \
                 : "r"(w[0]), "r"(w[1]), "r"(w[2]), "r"(w[3]), "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]),             \
                   "r"(places), "n"(PAIR))

template <typename T, int PAIR>
__device__ void multiply(float (&sum)[4], const unsigned (&w)[4], const unsigned (&x)[4], unsigned places) {
    if constexpr (std::is_same_v<T, __nv_bfloat16>) MMA("bf16");
    else MMA("f16");
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

// wgmma: a warpgroup multiplies 64 channels × 32 columns of weights by 32 × 256 of x, both straight from shared memory.
// Sparse products read x as fast as shared memory delivers it, so that tiles have to be large. L2 could still not bring
// all of them to every multiprocessor: the blocks of a cluster have different channels of the same tokens, and each
// reads a share of x for all.
//
// Tiles come in by TMA, which one thread of a block asks for. It is several stages ahead of the two warpgroups that
// multiply, also from one tile to the next. TMA fills in zeros beyond the last row.
namespace many {

constexpr int CHANNELS = 128, TOKENS = 256, DEPTH = 64, STAGES = 5, SHARERS = 2, TURNED = 64;
constexpr int GROUPS = CHANNELS / 64, THREADS = 128 * GROUPS + 32;

struct Memory {
    // TMA permutes the 16-byte chunks of a row, as wgmma expects: chunk c of row r is at c ^ r % 8 in x, and at
    // c ^ r / 2 % 4 in values, where the pattern begins at multiples of 1024 and of 512 bytes.
    struct alignas(1024) Stage {
        uint16_t x[TOKENS][DEPTH];
        uint16_t values[CHANNELS][DEPTH / 2];
        uint8_t indices[CHANNELS][16];  // of 128 columns, the least that TMA takes: two stages each have all of them
    } stages[STAGES];
    uint4 turned[GROUPS][TURNED][8];  // 64 channels of some tokens of y, on their way out
    uint64_t full[STAGES], empty[STAGES];
};

// The stage that comes next, and the parity of its phase.
struct Turn {
    int stage = 0;
    unsigned parity = 0;
    __device__ void next() {
        if (++stage == STAGES) stage = 0, parity ^= 1;
    }
};

__device__ unsigned address(const void* at) { return unsigned(__cvta_generic_to_shared(at)); }

__device__ void prepare(uint64_t* barrier, int arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(address(barrier)), "r"(arrivals) : "memory");
}

// Waits until the phase of this parity has ended. The one before the first counts as ended, and as of parity 1.
__device__ void wait(const uint64_t* barrier, unsigned parity) {
    asm volatile("{.reg .pred ended; again: mbarrier.try_wait.parity.shared::cta.b64 ended, [%0], %1;"
                 " @!ended bra again;}" ::"r"(address(barrier)), "r"(parity) : "memory");
}

// Arrives, and has the phase wait for `bytes` of TMA as well.
__device__ void arrive_expecting(uint64_t* barrier, int bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address(barrier)), "r"(bytes)
                 : "memory");
}

// Arrives at the same barrier of another block of the cluster.
__device__ void arrive_at(uint64_t* barrier, int rank) {
    asm volatile("{.reg .b32 there; mapa.shared::cluster.u32 there, %0, %1;"
                 " mbarrier.arrive.shared::cluster.b64 _, [there];}" ::"r"(address(barrier)), "r"(rank) : "memory");
}

__device__ void meet_cluster() { asm volatile("barrier.cluster.arrive; barrier.cluster.wait;" ::: "memory"); }

__device__ void meet_group(int group) { asm volatile("bar.sync %0, 128;" ::"r"(1 + group) : "memory"); }

// The tile that begins at `row` and `column`, of the size that the map says.
__device__ void load(void* to, const CUtensorMap& map, int row, int column, uint64_t* barrier) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
                 " [%0], [%1, {%3, %4}], [%2];" ::"r"(address(to)), "l"(&map), "r"(address(barrier)), "r"(column),
                 "r"(row) : "memory");
}

// The same to all blocks of the cluster: to this place in each, with its barrier.
__device__ void load_for_all(void* to, const CUtensorMap& map, int row, int column, uint64_t* barrier) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
                 " [%0], [%1, {%3, %4}], [%2], %5;" ::"r"(address(to)), "l"(&map), "r"(address(barrier)), "r"(column),
                 "r"(row), "h"(uint16_t((1 << SHARERS) - 1)) : "memory");
}

// Where wgmma finds a tile: its address, the bytes from eight rows to the next eight, and the kind of permutation, 1 in
// rows of 128 bytes, 2 in rows of 64. It counts 16 bytes as one. (Bits 16 to 29 mean nothing where rows are permuted.)
__device__ uint64_t describe(const void* tile, uint64_t eight_rows, uint64_t kind) {
    return kind << 62 | eight_rows / 16 << 32 | 1 << 16 | address(tile) / 16;
}

#define FOUR(i) "+f"(sum[i]), "+f"(sum[i + 1]), "+f"(sum[i + 2]), "+f"(sum[i + 3])
#define SIXTEEN(i) FOUR(i), FOUR(i + 4), FOUR(i + 8), FOUR(i + 12)
#define TEN(i) "%" #i "0, %" #i "1, %" #i "2, %" #i "3, %" #i "4, %" #i "5, %" #i "6, %" #i "7, %" #i "8, %" #i "9, "
#define WGMMA(TYPE)                                                                                                    \
    asm volatile("wgmma.mma_async.sp.sync.aligned.m64n256k32.f32." TYPE "." TYPE " {"                                  \
                 TEN() TEN(1) TEN(2) TEN(3) TEN(4) TEN(5) TEN(6) TEN(7) TEN(8) TEN(9) TEN(10) TEN(11)                  \
                 "%120, %121, %122, %123, %124, %125, %126, %127}, %128, %129, %130, %131, 1, 1, 1, 0, 0;"             \
                 : SIXTEEN(0), SIXTEEN(16), SIXTEEN(32), SIXTEEN(48), SIXTEEN(64), SIXTEEN(80), SIXTEEN(96),           \
                   SIXTEEN(112)                                                                                        \
                 : "l"(values), "l"(x), "r"(places), "n"(PAIR))

// Begins to add a product to `sum`. What it is given must stay as it is until `finish`.
template <typename T, int PAIR>
__device__ void multiply(float (&sum)[TOKENS / 2], uint64_t values, uint64_t x, unsigned places) {
    if constexpr (std::is_same_v<T, __nv_bfloat16>) WGMMA("bf16");
    else WGMMA("f16");
}

// What is in registers is there for the products to come.
__device__ void fence(unsigned& places) { asm volatile("wgmma.fence.sync.aligned;" : "+r"(places)::"memory"); }

// The products since the last call are a group.
__device__ void end_group() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

// Waits for all groups but the last PENDING.
template <int PENDING>
__device__ void finish() { asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory"); }

// Keeps the compiler from moving what reads or writes sums across this.
__device__ void pin(float (&sum)[TOKENS / 2]) {
    for (float& one : sum) asm volatile("" : "+f"(one)::"memory");
}

// Four 8 × 8 matrices, transposed: lane l has the two elements 2 · (l % 4) of row l / 4 of each, and names what becomes
// row l % 8 of matrix l / 8.
__device__ void store_transposed(const void* row, const unsigned (&from)[4]) {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address(row)),
                 "r"(from[0]), "r"(from[1]), "r"(from[2]), "r"(from[3]) : "memory");
}

template <typename T>
__device__ unsigned pair(const float* of) {
    const T both[2] = {T(of[0]), T(of[1])};
    return reinterpret_cast<const unsigned&>(both);
}

template <typename T>
__global__ void __launch_bounds__(THREADS, 1)
tile_kernel(const __grid_constant__ CUtensorMap x_map, const __grid_constant__ CUtensorMap values_map,
            const __grid_constant__ CUtensorMap indices_map, T* y, int m, int n, int k) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    extern __shared__ __align__(1024) uint8_t shared[];
    Memory& memory = *reinterpret_cast<Memory*>(shared);
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, rank = blockIdx.x % SHARERS;
    if (threadIdx.x == 0) {
        for (int i = 0; i < STAGES; ++i) {
            prepare(&memory.full[i], 1);
            prepare(&memory.empty[i], 4 * GROUPS * SHARERS);  // the warps that multiply, of all blocks
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    meet_cluster();

    // Tiles of the same channels follow each other, so that their weights are read once.
    const int along_tokens = (m + TOKENS - 1) / TOKENS;
    const int tiles = along_tokens * ((n + CHANNELS * SHARERS - 1) / (CHANNELS * SHARERS));
    Turn turn;
    for (int tile = blockIdx.x / SHARERS; tile < tiles; tile += gridDim.x / SHARERS) {
        const int first_token = tile % along_tokens * TOKENS;
        const int first_channel = (tile / along_tokens * SHARERS + rank) * CHANNELS;
        if (warp == 4 * GROUPS) {
            for (int step = 0; lane == 0 && step < k / DEPTH; ++step, turn.next()) {
                constexpr int SHARE = TOKENS / SHARERS;
                Memory::Stage& to = memory.stages[turn.stage];
                uint64_t* full = &memory.full[turn.stage];
                wait(&memory.empty[turn.stage], turn.parity ^ 1);
                arrive_expecting(full, sizeof(Memory::Stage));
                load_for_all(to.x[SHARE * rank], x_map, first_token + SHARE * rank, DEPTH * step, full);
                load(to.values, values_map, first_channel, DEPTH / 2 * step, full);
                load(to.indices, indices_map, first_channel, step / 2 * 16, full);
            }
            continue;
        }

        // A thread has channels `row` and `row` + 8 of the tile, and two of every eight tokens.
        const int group = warp / 4, row = warp * 16 + lane / 4;
        // TMA fills in 0 beyond the last channel, which is no pair of indices; 0x4 is the first two.
        const unsigned filled_in =
            (first_channel + row < n ? 0 : 0x4444) | (first_channel + row + 8 < n ? 0 : 0x44440000);
        float sum[TOKENS / 2] = {};
        pin(sum);
        unsigned places[2];
        int last = -1;  // the stage of the group of products that may be under way
        const auto give_back = [&] {
            if (lane < SHARERS) arrive_at(&memory.empty[last], lane);
        };
        for (int two = 0; two < k / DEPTH; two += 2) {
#pragma unroll
            for (int i = 0; i < 2; ++i, turn.next()) {
                const Memory::Stage& from = memory.stages[turn.stage];
                wait(&memory.full[turn.stage], turn.parity);
                // 16 bits of indices are 16 columns of a channel. Of the four threads that share channels, the first
                // has columns 0-15, of `row` in its lower half and of `row` + 8 in its upper, the second columns 16-31;
                // the other two have the same of the next 32 columns.
                const int at = 8 * i + lane % 4 * 2;
                places[i] = *reinterpret_cast<const uint16_t*>(from.indices[row] + at) |
                    unsigned(*reinterpret_cast<const uint16_t*>(from.indices[row + 8] + at)) << 16 | filled_in;
                const uint64_t values = describe(from.values[64 * group], 512, 2), x = describe(from.x, 1024, 1);
                fence(places[i]);
                multiply<T, 0>(sum, values, x, places[i]);
                multiply<T, 1>(sum, values + 32 / 16, x + 64 / 16, places[i]);  // 32 columns on
                end_group();
                finish<1>();  // the one before, so that the units always have one to go on with
                if (last >= 0) give_back();
                last = turn.stage;
            }
        }
        finish<0>();
        give_back();
        pin(sum);

        // Sums go through shared memory, so that neighbouring threads store neighbouring channels.
        uint4(&turned)[TURNED][8] = memory.turned[group];
#pragma unroll
        for (int first = 0; first < TOKENS; first += TURNED) {
            meet_group(group);  // what was there has been read
#pragma unroll
            for (int token = 0; token < TURNED; token += 16) {
                // Of eight tokens the first eight channels and the other eight, and the same of the next eight tokens.
                const float* of = sum + (first + token) / 2;
                const unsigned four[] = {pair<T>(of), pair<T>(of + 2), pair<T>(of + 4), pair<T>(of + 6)};
                const int to = token + lane / 16 * 8 + lane % 8, chunk = warp % 4 * 2 + lane / 8 % 2;
                store_transposed(&turned[to][chunk ^ to % 8], four);
            }
            meet_group(group);
            for (int i = threadIdx.x % 128; i < 8 * TURNED; i += 128) {
                const int token = first_token + first + i / 8, channel = first_channel + 64 * group + i % 8 * 8;
                const uint4& eight = turned[i / 8][i % 8 ^ i / 8 % 8];
                T* to = y + int64_t(token) * n + channel;
                if (token >= m || channel >= n) continue;
                if (n % 8 == 0) *reinterpret_cast<uint4*>(to) = eight;
                else
                    for (int e = 0; e < min(8, n - channel); ++e) to[e] = reinterpret_cast<const T*>(&eight)[e];
            }
        }
    }
    meet_cluster();  // before a block ends, none has to arrive at its barriers any more
#else
    __trap();  // compiled for sm_90, which has no wgmma, instead of sm_90a
#endif
}

// How TMA finds tiles in a matrix.
template <typename Element>
static CUtensorMap map(const Element* at, int64_t rows, int64_t columns, int tile_rows, int tile_columns,
                       CUtensorMapSwizzle swizzle) {
    static const auto encode = [] {
        void* found = nullptr;
        cudaDriverEntryPointQueryResult result;
        cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000, cudaEnableDefault, &result);
        return decltype(&cuTensorMapEncodeTiled)(found);
    }();
    const cuuint64_t sizes[] = {cuuint64_t(columns), cuuint64_t(rows)}, pitch[] = {columns * sizeof(Element)};
    const cuuint32_t tile[] = {cuuint32_t(tile_columns), cuuint32_t(tile_rows)}, steps[] = {1, 1};
    CUtensorMap made;
    encode(&made, sizeof(Element) == 1 ? CU_TENSOR_MAP_DATA_TYPE_UINT8 : CU_TENSOR_MAP_DATA_TYPE_UINT16, 2,
           const_cast<Element*>(at), sizes, pitch, tile, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle,
           CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    return made;
}

template <typename T>
static void launch(const T* x, const T* values, const uint8_t* indices, T* y, int64_t m, int64_t n, int64_t k,
                   cudaStream_t stream) {
    const auto kernel = tile_kernel<T>;
    cudaLaunchAttribute cluster = {};
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim = {SHARERS, 1, 1};
    cudaLaunchConfig_t config = {SHARERS, THREADS, sizeof(Memory), stream, &cluster, 1};
    // As many clusters as the GPU has room for; each computes one tile after the other.
    static const int most = [&] {
        int clusters = 0;
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(Memory));
        cudaOccupancyMaxActiveClusters(&clusters, kernel, &config);
        return clusters;
    }();
    const int64_t tiles = (m + TOKENS - 1) / TOKENS * ((n + CHANNELS * SHARERS - 1) / (CHANNELS * SHARERS));
    config.gridDim = unsigned(SHARERS * (tiles < most ? tiles : most));
    cudaLaunchKernelEx(&config, kernel, map(x, m, k, TOKENS / SHARERS, DEPTH, CU_TENSOR_MAP_SWIZZLE_128B),
                       map(values, n, k / 2, CHANNELS, DEPTH / 2, CU_TENSOR_MAP_SWIZZLE_64B),
                       map(indices, n, k / 8, CHANNELS, 16, CU_TENSOR_MAP_SWIZZLE_NONE), y, int(m), int(n), int(k));
}

}  // namespace many

static bool is_hopper() {
    int device = 0, major = 0;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
    return major == 9;
}

template <typename T>
void matmul(const T* x, const T* values, const uint8_t* indices, T* y, int64_t m, int64_t n, int64_t k,
            cudaStream_t stream) {
    if (m > 16 && k % 128 == 0 && is_hopper()) {
        many::launch(x, values, indices, y, m, n, k, stream);
    } else if (m <= 16) {
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
