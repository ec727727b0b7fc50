// Matrix multiplication in CUDA: tiles in shared memory, multiplied by the matrix units, with k shared by a cluster.
//
// - float16 and bfloat16 go to the matrix units through mma.sync, with float32 sums. The copies of the next strips of
//   a and b run ahead, straight from global into shared memory, while one strip is multiplied.
// - Where tiles of c are too few for all multiprocessors, a cluster of 2 to 8 blocks shares the sum along k. The parts
//   are added through distributed shared memory, in the order of the blocks: no workspace, no atomics, and the same
//   result each time. With 16 rows, this is what keeps enough reads of b under way.
// - float32 stays float32 (the matrix units would round to TF32): 8 × 8 sums in the registers of each thread.
// - Copies move 16 bytes. Rows that do not begin at multiples of 16 bytes take the float32 kernel, one element a load.

#include <algorithm>
#include <cooperative_groups.h>
#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <cuda_runtime.h>
#include <type_traits>

constexpr int DEEP = 64, STAGES = 4, MAX_CLUSTER = 8, GROUP = 16;  // DEEP: the extent of a strip along k
constexpr int SIDE = 128, STRIP = 8, THREADS = 256;                // of the float32 kernel

template <typename T, int WIDTH>
struct alignas(WIDTH * sizeof(T)) Pack {
    T v[WIDTH];
};

struct Tile { int64_t row, column; };  // in tiles

// Tiles that are computed at the same time should share rows of a and columns of b in L2: they go down GROUP rows
// before they go one column to the right, which makes the tiles under way a block that is about square.
static __device__ Tile tile_at(int64_t index, int64_t down, int64_t across) {
    const int64_t first = index / (GROUP * across) * GROUP, rows = min(down - first, int64_t(GROUP));
    const int64_t inside = index - first * across;
    return {first + inside % rows, inside / rows};
}

static __host__ __device__ int64_t pieces(int64_t length, int64_t piece) { return (length + piece - 1) / piece; }

// 16 bytes from global to shared memory, past the registers. Outside the matrix 0 is written, and `from` is not read.
static __device__ void copy(unsigned to, const void* from, bool inside) {
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" :: "r"(to), "l"(from), "r"(inside ? 16 : 0)
                 : "memory");
}

// Where in a strip of rows of CHUNKS × 16 bytes a chunk lies. ldmatrix reads one chunk of 8 rows at a time. At their
// plain places all 8 would be in the same banks; the exclusive or spreads them over all 32.
template <int CHUNKS>
static __device__ unsigned place(int row, int chunk) {
    return unsigned(row * CHUNKS + (chunk ^ (row % 8))) * 16;
}

template <int ROWS, int CHUNKS, int BLOCK, typename T>
static __device__ void copy_strip(unsigned to, const T* from, int64_t pitch, int64_t rows, int64_t columns) {
    constexpr int step = BLOCK / CHUNKS;  // rows that the block copies at a time
    static_assert(BLOCK % CHUNKS == 0 && ROWS % step == 0 && step % 8 == 0);  // 8: every row has the first one's places
    const int row = int(threadIdx.x) / CHUNKS, chunk = int(threadIdx.x) % CHUNKS;
    const int left = chunk * 8 < columns ? int(min(rows, int64_t(ROWS))) - row : 0;
    to += place<CHUNKS>(row, chunk);
    from += row * pitch + chunk * 8;
    for (int i = 0; i < ROWS; i += step, from += step * pitch) copy(to + i * CHUNKS * 16, from, i < left);
}

// Four matrices of 8 × 8. Lane l names the row l % 8 of matrix l / 8, and gets two elements of row l / 4 of each: what
// mma expects of a. `TURNED` gives two of column l / 4 instead: what it expects of b, whose pairs lie along k.
template <bool TURNED>
static __device__ void load_matrices(unsigned (&to)[4], unsigned from) {
#define LOAD(TRANS)                                                                                                    \
    asm volatile("ldmatrix.sync.aligned.m8n8.x4" TRANS ".shared.b16 {%0, %1, %2, %3}, [%4];"                           \
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(from) : "memory")
    if constexpr (TURNED) LOAD(".trans"); else LOAD("");
}

// sum += a · b of a warp: 16 × 16 times 16 × 8.
template <typename T>
static __device__ void multiply_add(float (&sum)[4], const unsigned (&a)[4], const unsigned* b) {
#define MULTIPLY(TYPE)                                                                                                 \
    asm("mma.sync.aligned.m16n8k16.row.col.f32." TYPE "." TYPE ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "   \
        "{%0, %1, %2, %3};" : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])                                   \
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))
    if constexpr (std::is_same_v<T, __half>) MULTIPLY("f16"); else MULTIPLY("bf16");
}

// What a block of the kernel below computes at a time, in warps that each have a part of it.
template <int TALL, int WIDE, int WARP_TALL, int WARP_WIDE>
struct Shape {
    static constexpr int tall = TALL, wide = WIDE, warp_tall = WARP_TALL, warp_wide = WARP_WIDE;
    static constexpr int across = WIDE / WARP_WIDE, threads = TALL / WARP_TALL * across * 32;
    static constexpr int left = TALL * DEEP * 2, stage = left + DEEP * WIDE * 2;  // bytes
    static constexpr int pitch = WIDE + 8;  // of the sums: 8 more, so that rows that are written together differ in bank
    static constexpr int bytes = std::max(STAGES * stage, TALL * pitch * 4);
};

template <typename T, typename S>
static __global__ void __launch_bounds__(S::threads)
multiply(const T* a, const T* b, T* c, int64_t m, int64_t n, int64_t k) {
    extern __shared__ __align__(128) unsigned char memory[];
    const unsigned shared = unsigned(__cvta_generic_to_shared(memory));
    const auto cluster = cooperative_groups::this_cluster();
    const int size = int(cluster.num_blocks()), rank = int(cluster.block_rank());
    const Tile tile = tile_at(blockIdx.x / size, pieces(m, S::tall), pieces(n, S::wide));
    const int64_t top = tile.row * S::tall, start = tile.column * S::wide;
    const int64_t share = pieces(pieces(k, DEEP), size) * DEEP, first = min(rank * share, k);
    const int64_t length = min(share, k - first);  // 0 for a block behind the end

    const T *next_a = a + top * k + first, *next_b = b + first * n + start;
    int64_t rest = length;
    const auto fetch = [&](int slot) {
        const unsigned to = shared + slot * S::stage;
        if (rest > 0) {
            copy_strip<S::tall, DEEP / 8, S::threads>(to, next_a, k, m - top, rest);
            copy_strip<DEEP, S::wide / 8, S::threads>(to + S::left, next_b, n, rest, n - start);
        }
        __pipeline_commit();  // also without copies: the waits below count commits
        next_a += DEEP, next_b += DEEP * n, rest -= DEEP;
    };

    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int down = warp / S::across * S::warp_tall, right = warp % S::across * S::warp_wide;
    constexpr int TALLS = S::warp_tall / 16, WIDES = S::warp_wide / 16;
    unsigned as[2][TALLS][4], bs[2][WIDES][4];
    float sum[TALLS][2 * WIDES][4] = {};
    // The lanes name 16 rows, and the chunk on the left or on the right of 16 columns: of a strip of b, rows lie along k.
    const auto load = [&](int into, int slot, int deep) {
        const unsigned from = shared + slot * S::stage;
        for (int i = 0; i < TALLS; ++i)
            load_matrices<false>(as[into][i], from + place<DEEP / 8>(down + i * 16 + lane % 16, deep * 2 + lane / 16));
        for (int j = 0; j < WIDES; ++j)
            load_matrices<true>(bs[into][j], from + S::left + place<S::wide / 8>(deep * 16 + lane % 16,
                                                                                right / 8 + j * 2 + lane / 16));
    };

    for (int i = 0; i < STAGES; ++i) fetch(i);
    __pipeline_wait_prior(STAGES - 1);
    __syncthreads();
    load(0, 0, 0);
    int slot = 0;
#pragma unroll 1
    for (int64_t along = 0; along < length; along += DEEP, slot = (slot + 1) % STAGES) {
#pragma unroll
        for (int deep = 0; deep < DEEP / 16; ++deep) {
            // Operands are loaded one step before they are multiplied. So the last step of a strip loads from the next
            // one, which has to be there by then. The barrier tells both: that the copies of all threads have arrived,
            // and that no warp reads this strip any more, whose place the next copy takes.
            const bool over = deep == DEEP / 16 - 1;
            if (over) __pipeline_wait_prior(STAGES - 2);
            if (over) __syncthreads();
            load((deep + 1) % 2, over ? (slot + 1) % STAGES : slot, over ? 0 : deep + 1);
            if (over) fetch(slot);
            for (int i = 0; i < TALLS; ++i)
                for (int j = 0; j < 2 * WIDES; ++j)
                    multiply_add<T>(sum[i][j], as[deep % 2][i], bs[deep % 2][j / 2] + j % 2 * 2);
        }
    }

    // The sums pass through shared memory, for whole lines of c and for the other blocks. It is free: no copy is left.
    __syncthreads();
    float* const sums = reinterpret_cast<float*>(memory);
    for (int i = 0; i < TALLS; ++i)
        for (int j = 0; j < 2 * WIDES; ++j)
            for (int half = 0; half < 2; ++half) {
                const int row = down + i * 16 + half * 8 + lane / 4, column = right + j * 8 + lane % 4 * 2;
                const float* const pair = sum[i][j] + half * 2;
                *reinterpret_cast<float2*>(sums + row * S::pitch + column) = {pair[0], pair[1]};
            }
    cluster.sync();
    for (int i = rank * S::threads + int(threadIdx.x); i < S::tall * S::wide / 4; i += size * S::threads) {
        const int row = i / (S::wide / 4), column = i % (S::wide / 4) * 4;
        if (top + row >= m || start + column >= n) continue;
        float4 total = {};
        for (int from = 0; from < size; ++from) {
            const float* const theirs = cluster.map_shared_rank(sums, from) + row * S::pitch + column;
            const float4 part = *reinterpret_cast<const float4*>(theirs);
            total = {total.x + part.x, total.y + part.y, total.z + part.z, total.w + part.w};
        }
        *reinterpret_cast<Pack<T, 4>*>(c + (top + row) * n + start + column) =
            Pack<T, 4>{T(total.x), T(total.y), T(total.z), T(total.w)};
    }
    cluster.sync();  // nobody ends while others read its sums
}

// Two blocks fit into a multiprocessor, and while one waits at its barrier the other computes.
template <typename T, int WIDTH>
static __global__ void __launch_bounds__(THREADS, 2)
multiply_plain(const T* a, const T* b, T* c, int64_t m, int64_t n, int64_t k) {
    // Of a, columns are read, 4 rows at once: the strip is turned. 4 more: the writes differ in bank.
    __shared__ __align__(16) float left[2][STRIP][SIDE + 4], right[2][STRIP][SIDE];
    const Tile tile = tile_at(blockIdx.x, pieces(m, SIDE), pieces(n, SIDE));
    const int64_t top = tile.row * SIDE, start = tile.column * SIDE;
    const int id = threadIdx.x, warp = id / 32, lane = id % 32;
    // A warp covers 4 × 8 threads: with 4 rows and 4 columns for each, that reads the fewest different addresses.
    const int row = (warp / 2 * 4 + lane / 8) * 4, column = (warp % 2 * 8 + lane % 8) * 4;

    // A thread copies 4 neighbours of each strip of a and of b. `rest`: how much is left along k.
    const T *from_a = a + (top + id / 2) * k + id % 2 * 4, *from_b = b + id / 32 * n + start + id % 32 * 4;
    const int ends_a = top + id / 2 < m ? id % 2 * 4 : STRIP, wide_b = int(min(n - start, int64_t(SIDE))) - id % 32 * 4;
    int64_t rest = k;
    float next_a[4], next_b[4], sum[8][8] = {};
    const auto fetch = [&] {
        const int inside = int(min(rest, int64_t(STRIP)));
        for (int i = 0; i < 4; i += WIDTH) {
            Pack<T, WIDTH> pa = {}, pb = {};
            if (ends_a + i < inside) pa = *reinterpret_cast<const Pack<T, WIDTH>*>(from_a + i);
            if (i < wide_b && id / 32 < inside) pb = *reinterpret_cast<const Pack<T, WIDTH>*>(from_b + i);
            for (int j = 0; j < WIDTH; ++j) next_a[i + j] = float(pa.v[j]), next_b[i + j] = float(pb.v[j]);
        }
        from_a += STRIP, from_b += STRIP * n, rest -= STRIP;
    };
    const auto keep = [&](int slot) {
        for (int i = 0; i < 4; ++i) left[slot][id % 2 * 4 + i][id / 2] = next_a[i];
        *reinterpret_cast<float4*>(&right[slot][id / 32][id % 32 * 4]) = {next_b[0], next_b[1], next_b[2], next_b[3]};
    };

    fetch();
    keep(0);
    __syncthreads();
    int slot = 0;
#pragma unroll 1
    for (bool more = true; more; slot ^= 1) {
        more = rest > 0;
        if (more) fetch();  // under way while this strip is multiplied
#pragma unroll 2  // whole, its loads would run so far ahead that registers spill
        for (int s = 0; s < STRIP; ++s) {
            float x[8], y[8];
            for (int i = 0; i < 8; i += 4) {
                *reinterpret_cast<float4*>(x + i) = *reinterpret_cast<float4*>(&left[slot][s][row + i * (SIDE / 8)]);
                *reinterpret_cast<float4*>(y + i) = *reinterpret_cast<float4*>(&right[slot][s][column + i * (SIDE / 8)]);
            }
            for (int i = 0; i < 8; ++i)
                for (int j = 0; j < 8; ++j) sum[i][j] += x[i] * y[j];
        }
        if (more) keep(slot ^ 1);
        __syncthreads();
    }
    for (int i = 0; i < 8; ++i)
        for (int j = 0; j < 8; j += WIDTH) {
            const int64_t cm = top + row + i / 4 * (SIDE / 2) + i % 4, cn = start + column + j / 4 * (SIDE / 2) + j % 4;
            Pack<T, WIDTH> out;
            for (int l = 0; l < WIDTH; ++l) out.v[l] = T(sum[i][j + l]);
            if (cm < m && cn < n) *reinterpret_cast<Pack<T, WIDTH>*>(c + cm * n + cn) = out;
        }
}

template <typename T, int WIDTH>
void launch_plain(const T* a, const T* b, T* c, int64_t m, int64_t n, int64_t k, cudaStream_t stream) {
    multiply_plain<T, WIDTH><<<unsigned(pieces(m, SIDE) * pieces(n, SIDE)), THREADS, 0, stream>>>(a, b, c, m, n, k);
}

// `room`: how many blocks can be at work at once. The cluster grows as long as it does not exceed that, and as its
// blocks keep 4 strips each.
template <typename T, typename S>
void launch_shape(int64_t room, const T* a, const T* b, T* c, int64_t m, int64_t n, int64_t k, cudaStream_t stream) {
    const int64_t tiles = pieces(m, S::tall) * pieces(n, S::wide);
    int64_t size = 1;
    while (size < MAX_CLUSTER && tiles * size * 2 <= room && size * 2 * 4 * DEEP <= k) size *= 2;
    cudaFuncSetAttribute(multiply<T, S>, cudaFuncAttributeMaxDynamicSharedMemorySize, S::bytes);
    cudaLaunchAttribute cluster = {};
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim.x = unsigned(size);
    cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(unsigned(tiles * size));
    config.blockDim = dim3(S::threads);
    config.dynamicSmemBytes = S::bytes;
    config.stream = stream;
    config.attrs = &cluster;
    config.numAttrs = size > 1;
    cudaLaunchKernelEx(&config, multiply<T, S>, a, b, c, m, n, k);
}

template <typename T>
void launch(const T* a, const T* b, T* c, int64_t m, int64_t n, int64_t k, cudaStream_t stream) {
    if (k % 8 || n % 8) return launch_plain<T, 1>(a, b, c, m, n, k, stream);
    int device = 0, processors = 0;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
    // A large tile reads the least from L2, but one block fills a multiprocessor: there must be enough of them.
    if (m <= 32)
        launch_shape<T, Shape<16, 128, 16, 32>>(2 * processors, a, b, c, m, n, k, stream);
    else if (pieces(m, 128) * pieces(n, 256) >= processors * 3 / 4)
        launch_shape<T, Shape<128, 256, 64, 64>>(processors, a, b, c, m, n, k, stream);
    else
        launch_shape<T, Shape<128, 128, 64, 32>>(processors, a, b, c, m, n, k, stream);
}

// c = a · b: [m, k], [k, n], [m, n], row-major, on the device, at multiples of 16 bytes. One symbol for each dtype.
extern "C" void matmul_float32(const float* a, const float* b, float* c, int64_t m, int64_t n, int64_t k,
                               cudaStream_t stream) {
    (k % 4 || n % 4 ? launch_plain<float, 1> : launch_plain<float, 4>)(a, b, c, m, n, k, stream);
}

extern "C" void matmul_float16(const __half* a, const __half* b, __half* c, int64_t m, int64_t n, int64_t k,
                               cudaStream_t stream) {
    launch(a, b, c, m, n, k, stream);
}

extern "C" void matmul_bfloat16(const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat16* c, int64_t m, int64_t n,
                                int64_t k, cudaStream_t stream) {
    launch(a, b, c, m, n, k, stream);
}
