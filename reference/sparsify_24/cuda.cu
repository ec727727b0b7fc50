// Pruning to 2:4 in CUDA. Eight neighbours along k are a unit: they are loaded together, in 16 bytes where they are of
// 16 bits each, and leave as four values, in 8 bytes, and one byte of indices.
//
// Bits are compared and copied. Without its sign bit a float orders as a whole number: both zeros are 0, no subnormal
// number is flushed, and one kernel serves all dtypes of one size.
#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

constexpr int THREADS = 256;

template <typename Bits>
struct alignas(8 * sizeof(Bits) > 16 ? 16 : 8 * sizeof(Bits)) Eight { Bits at[8]; };

template <typename Bits>
struct alignas(4 * sizeof(Bits)) Four { Bits at[4]; };

// Two of the four elements from x on to y; their indices, the lower one in the lower bits.
template <typename Bits>
__device__ unsigned prune(const Bits* x, Bits* y) {
    constexpr Bits magnitude = Bits(~Bits(0)) >> 1;
    const Bits p = x[0] & magnitude, q = x[1] & magnitude, r = x[2] & magnitude, s = x[3] & magnitude;
    // One comparison a pair; >= lets the lower index win ties. Kept is what comes before at least two others.
    const int ab = p >= q, ac = p >= r, ad = p >= s, bc = q >= r, bd = q >= s, cd = r >= s;
    const bool a = ab + ac + ad >= 2, b = 1 - ab + bc + bd >= 2, c = 2 - ac - bc + cd >= 2, d = 3 - ad - bd - cd >= 2;
    // Selections, no indexing: an array that is indexed by what was computed would leave the registers.
    y[0] = a ? x[0] : b ? x[1] : x[2];
    y[1] = d ? x[3] : c ? x[2] : x[1];
    return (a ? 0u : b ? 1u : 2u) | (d ? 3u : c ? 2u : 1u) << 2;
}

template <typename Bits>
__device__ uint8_t prune(const Eight<Bits>& x, Four<Bits>& y) {
    const unsigned low = prune(x.at, y.at), high = prune(x.at + 4, y.at + 2);
    return uint8_t(low | high << 4);
}

// Rows hold whole units, so the matrix is one long row. Neighbouring threads take neighbouring units, and each several
// of them a block apart, so that it has several loads under way.
template <typename Bits>
__global__ void __launch_bounds__(THREADS)
along_rows(const Eight<Bits>* x, Four<Bits>* values, uint8_t* indices, int64_t units) {
    constexpr int EACH = 4;
    const int64_t first = int64_t(blockIdx.x) * (EACH * THREADS) + threadIdx.x;
    Eight<Bits> taken[EACH];
#pragma unroll
    for (int i = 0; i < EACH; ++i)
        if (first + i * THREADS < units) taken[i] = x[first + i * THREADS];
#pragma unroll
    for (int i = 0; i < EACH; ++i)
        if (first + i * THREADS < units) {
            Four<Bits> kept;
            indices[first + i * THREADS] = prune(taken[i], kept);
            values[first + i * THREADS] = kept;
        }
}

// Units run down the columns here. A block takes a tile of 256 rows: it reads along the rows, prunes in registers, and
// turns what is left in shared memory, so that it writes along the columns: 32 units of one, 32 bytes of indices.
template <typename Bits, bool WHOLE>
__global__ void __launch_bounds__(THREADS)
down_columns(const Bits* x, Four<Bits>* values, uint8_t* indices, int64_t rows, int64_t cols) {
    constexpr int UNITS = 32, WIDE = 16 / sizeof(Bits), COLUMNS = WIDE * (THREADS / UNITS);
    // Each strip of columns begins elsewhere, else what neighbouring threads write would lie in the same banks.
    __shared__ Four<Bits> turned[COLUMNS][UNITS];
    __shared__ uint8_t bytes[COLUMNS][UNITS];
    const auto place = [](int column, int unit) { return (unit + 2 * (column / WIDE)) % UNITS; };

    const int64_t first_column = int64_t(blockIdx.x) * COLUMNS, first_unit = int64_t(blockIdx.y) * UNITS;
    const int column = threadIdx.x % (COLUMNS / WIDE) * WIDE, unit = threadIdx.x / (COLUMNS / WIDE);
    if (8 * (first_unit + unit) < rows) {
        alignas(16) Bits taken[8][WIDE];  // eight rows of WIDE columns
        const Bits* from = x + 8 * (first_unit + unit) * cols + first_column + column;
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            if (WHOLE) {  // every row begins at a multiple of 16 bytes and ends at one
                if (first_column + column < cols)
                    *reinterpret_cast<uint4*>(taken[i]) = *reinterpret_cast<const uint4*>(from + i * cols);
            } else {
#pragma unroll
                for (int j = 0; j < WIDE; ++j)
                    if (first_column + column + j < cols) taken[i][j] = from[i * cols + j];
            }
        }
#pragma unroll
        for (int j = 0; j < WIDE; ++j) {
            Eight<Bits> one;
            Four<Bits> kept;
#pragma unroll
            for (int i = 0; i < 8; ++i) one.at[i] = taken[i][j];
            bytes[column + j][place(column, unit)] = prune(one, kept);
            turned[column + j][place(column, unit)] = kept;
        }
    }
    __syncthreads();
    const int64_t units = rows / 8;  // in a column
    for (int i = threadIdx.x; i < COLUMNS * UNITS; i += THREADS) {
        const int64_t to_column = first_column + i / UNITS, to_unit = first_unit + i % UNITS;
        if (to_column < cols && to_unit < units) {
            const int from = place(i / UNITS, i % UNITS);
            values[to_column * units + to_unit] = turned[i / UNITS][from];
            indices[to_column * units + to_unit] = bytes[i / UNITS][from];
        }
    }
}

template <typename Bits>
void sparsify(const void* x, void* values, uint8_t* indices, bool transposed, int64_t rows, int64_t cols,
              cudaStream_t stream) {
    auto* kept = static_cast<Four<Bits>*>(values);
    if (!transposed) {
        const int64_t units = rows * cols / 8;
        const unsigned blocks = unsigned((units + 4 * THREADS - 1) / (4 * THREADS));
        along_rows<Bits><<<blocks, THREADS, 0, stream>>>(static_cast<const Eight<Bits>*>(x), kept, indices, units);
        return;
    }
    constexpr int64_t wide = 16 / sizeof(Bits), columns = wide * 8;
    const dim3 blocks(unsigned((cols + columns - 1) / columns), unsigned((rows + 255) / 256));
    const auto* from = static_cast<const Bits*>(x);
    if (cols % wide == 0)
        down_columns<Bits, true><<<blocks, THREADS, 0, stream>>>(from, kept, indices, rows, cols);
    else
        down_columns<Bits, false><<<blocks, THREADS, 0, stream>>>(from, kept, indices, rows, cols);
}

// `flip` is the parameter that `transposed` takes its value from.
#define ENTRY(NAME, TYPE, BITS)                                                                                        \
    extern "C" void NAME(const TYPE* x, TYPE* values, uint8_t* indices, int64_t transposed, int64_t rows,              \
                         int64_t cols, int64_t flip, cudaStream_t stream) {                                            \
        (void)flip;                                                                                                    \
        sparsify<BITS>(x, values, indices, transposed != 0, rows, cols, stream);                                       \
    }

ENTRY(sparsify_24_bfloat16, __nv_bfloat16, uint16_t)
ENTRY(sparsify_24_float16, __half, uint16_t)
ENTRY(sparsify_24_float32, float, uint32_t)
