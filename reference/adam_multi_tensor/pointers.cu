// AdamW over a list of tensors in CUDA, where the addresses are copied to the device: one launch, whatever the list.
// The counterpart of cuda.cu, which passes them as arguments; the update of an element is the same.
//
// - The host writes addresses, sizes and first blocks into a table in page-locked memory, and a copy of some KB takes it
//   to the device before the launch. Arguments need no copy, but have room for 4 KB, or 32 KB from CUDA 12.1 on.
// - Each call has a table of its own, which is left alone: a captured graph reads it whenever it is launched.
// - A block works on one chunk of one tensor, and finds the tensor by binary search over the first blocks of all.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cuda_runtime.h>

constexpr int THREADS = 256, CHUNK = 4096;  // elements of a block: 16 bytes a thread, four times over

// What follows from the scalars. The host works it out in double: 1 - beta would lose digits in float.
struct Factors {
    float keep;   // 1 - rate * weight_decay
    float rest1;  // 1 - beta1
    float beta2, rest2, eps;
    float root_scale;  // 1 / sqrt(1 - beta2^step)
    float rate;        // rate / (1 - beta1^step)
};

struct Tensor {
    float *params, *means, *squares;
    const float* grads;
    int64_t size;
};

static __device__ void update(float& p, float g, float& m, float& s, const Factors& by) {
    m += by.rest1 * (g - m);
    s = s * by.beta2 + by.rest2 * g * g;
    p = p * by.keep - by.rate * m / (sqrtf(s) * by.root_scale + by.eps);
}

static __device__ bool aligned(const void* a) { return reinterpret_cast<uintptr_t>(a) % sizeof(float4) == 0; }

static __global__ void __launch_bounds__(THREADS) chunk_kernel(const Tensor* tensors, const int* first_block, int count,
                                                                    Factors by) {
    // The last tensor whose first block is not after this one. All threads of the block take the same steps.
    int low = 0, high = count;
    while (high - low > 1) {
        const int middle = (low + high) / 2;
        (first_block[middle] <= int(blockIdx.x) ? low : high) = middle;
    }
    const Tensor tensor = tensors[low];
    const int64_t begin = int64_t(blockIdx.x - first_block[low]) * CHUNK;
    const int size = int(min(int64_t(CHUNK), tensor.size - begin));
    float* const params = tensor.params + begin;
    float* const means = tensor.means + begin;
    float* const squares = tensor.squares + begin;
    const float* const grads = tensor.grads + begin;

    const bool packed = aligned(params) && aligned(grads) && aligned(means) && aligned(squares);
    const int packs = packed ? size / 4 : 0;
    for (int i = threadIdx.x; i < packs; i += THREADS) {
        float4 p = reinterpret_cast<float4*>(params)[i];
        const float4 g = reinterpret_cast<const float4*>(grads)[i];
        float4 m = reinterpret_cast<float4*>(means)[i];
        float4 s = reinterpret_cast<float4*>(squares)[i];
        update(p.x, g.x, m.x, s.x, by);
        update(p.y, g.y, m.y, s.y, by);
        update(p.z, g.z, m.z, s.z, by);
        update(p.w, g.w, m.w, s.w, by);
        reinterpret_cast<float4*>(params)[i] = p;
        reinterpret_cast<float4*>(means)[i] = m;
        reinterpret_cast<float4*>(squares)[i] = s;
    }
    for (int i = 4 * packs + threadIdx.x; i < size; i += THREADS) update(params[i], grads[i], means[i], squares[i], by);
}

// In problem.toml: width ** (2 - index % 3) * (1 + index // 3 % 4).
static int64_t size_of(int64_t index, int64_t width) {
    const int64_t power[] = {width * width, width, 1};
    return power[index % 3] * (1 + index / 3 % 4);
}

// A table in page-locked memory and its copy on the device. Neither can be had while a call is captured, so a pool of both
// is taken by the first call: a fresh table for each of the calls that follow, and the first one again after the last.
constexpr int CAPACITY = 4096, TABLES = 64;

struct Table {
    Tensor tensors[CAPACITY];
    int first_block[CAPACITY];
};

static Table *host_tables = nullptr, *device_tables = nullptr;
static int next_table = 0;

// One step of AdamW, in place. The lists of pointers are in host memory, what they point to on the device.
extern "C" void adam_multi_tensor(float* const* params, const float* const* grads, float* const* means,
                                  float* const* squares, double rate, double beta1, double beta2, double eps,
                                  double weight_decay, int64_t step, int64_t count, int64_t width, int64_t updates,
                                  cudaStream_t stream) {
    (void)updates;  // the same as step
    if (count > CAPACITY) return;  // the largest case has 2000
    const Factors factors = {
        float(1 - rate * weight_decay),
        float(1 - beta1),
        float(beta2),
        float(1 - beta2),
        float(eps),
        float(1 / std::sqrt(1 - std::pow(beta2, double(step)))),
        float(rate / (1 - std::pow(beta1, double(step)))),
    };
    if (!host_tables) {
        if (cudaMallocHost(&host_tables, TABLES * sizeof(Table)) || cudaMalloc(&device_tables, TABLES * sizeof(Table))) return;
    }
    Table& table = host_tables[next_table];
    Table* const copy = device_tables + next_table;
    next_table = (next_table + 1) % TABLES;
    int blocks = 0;
    for (int i = 0; i < count; ++i) {
        const int64_t size = size_of(i, width);
        table.tensors[i] = {params[i], means[i], squares[i], grads[i], size};
        table.first_block[i] = blocks;
        blocks += int((size + CHUNK - 1) / CHUNK);
    }
    cudaMemcpyAsync(copy->tensors, table.tensors, count * sizeof(Tensor), cudaMemcpyHostToDevice, stream);
    cudaMemcpyAsync(copy->first_block, table.first_block, count * sizeof(int), cudaMemcpyHostToDevice, stream);
    chunk_kernel<<<unsigned(blocks), THREADS, 0, stream>>>(copy->tensors, copy->first_block, int(count), factors);
}
