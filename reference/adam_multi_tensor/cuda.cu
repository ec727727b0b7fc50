// AdamW over a list of tensors in CUDA: pointers and sizes are passed as arguments of a launch, as in PyTorch's
// multi_tensor_apply. Nothing is copied to the device, and a captured graph holds its own copy.
//
// - A launch takes as many tensors as its arguments have room for: 4 KB, or 32 KB from CUDA 12.1 on. A list of up to 90
//   tensors goes the small way, since all arguments are copied at each launch, whether they are used or not.
// - A block works on one chunk of one tensor. It finds the tensor by binary search over the first blocks of all: so a
//   launch may have any number of blocks, where large tensors would soon fill a table of blocks among the arguments.
// - Threads move 16 bytes at a time, and the last elements of a tensor one by one.

#include <algorithm>
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

template <int CAPACITY>
struct Arguments {
    Tensor tensors[CAPACITY];
    int first_block[CAPACITY];  // of each tensor
    int count;
    Factors factors;
};

using Few = Arguments<90>;
#if CUDART_VERSION >= 12010
using Many = Arguments<740>;
static_assert(sizeof(Many) <= 32764, "the arguments of one launch, from Volta and driver 530 on");
#else
using Many = Few;
#endif
static_assert(sizeof(Few) <= 4096, "the arguments of one launch");

static __device__ void update(float& p, float g, float& m, float& s, const Factors& by) {
    m += by.rest1 * (g - m);
    s = s * by.beta2 + by.rest2 * g * g;
    p = p * by.keep - by.rate * m / (sqrtf(s) * by.root_scale + by.eps);
}

static __device__ bool aligned(const void* a) { return reinterpret_cast<uintptr_t>(a) % sizeof(float4) == 0; }

// __grid_constant__: the arguments are read where they are, in constant memory. Without it, an index that is not known
// before the kernel runs might have every thread copy all of them to its stack.
template <class A>
static __global__ void __launch_bounds__(THREADS) chunk_kernel(const __grid_constant__ A arguments) {
    // The last tensor whose first block is not after this one. All threads of the block take the same steps.
    int low = 0, high = arguments.count;
    while (high - low > 1) {
        const int middle = (low + high) / 2;
        (arguments.first_block[middle] <= int(blockIdx.x) ? low : high) = middle;
    }
    const Tensor& tensor = arguments.tensors[low];
    const Factors by = arguments.factors;
    const int64_t begin = int64_t(blockIdx.x - arguments.first_block[low]) * CHUNK;
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

template <class A>
static void launch_all(float* const* params, const float* const* grads, float* const* means, float* const* squares,
                       const Factors& factors, int64_t count, int64_t width, cudaStream_t stream) {
    constexpr int64_t capacity = sizeof(A::tensors) / sizeof(Tensor);
    A arguments;
    arguments.factors = factors;
    for (int64_t first = 0; first < count; first += capacity) {
        arguments.count = int(std::min(capacity, count - first));
        int blocks = 0;
        for (int i = 0; i < arguments.count; ++i) {
            const int64_t index = first + i, size = size_of(index, width);
            arguments.tensors[i] = {params[index], means[index], squares[index], grads[index], size};
            arguments.first_block[i] = blocks;
            blocks += int((size + CHUNK - 1) / CHUNK);
        }
        chunk_kernel<<<unsigned(blocks), THREADS, 0, stream>>>(arguments);
    }
}

// One step of AdamW, in place. The lists of pointers are in host memory, what they point to on the device.
extern "C" void adam_multi_tensor(float* const* params, const float* const* grads, float* const* means,
                                  float* const* squares, double rate, double beta1, double beta2, double eps,
                                  double weight_decay, int64_t step, int64_t count, int64_t width, int64_t updates,
                                  cudaStream_t stream) {
    (void)updates;  // the same as step
    const Factors factors = {
        float(1 - rate * weight_decay),
        float(1 - beta1),
        float(beta2),
        float(1 - beta2),
        float(eps),
        float(1 / std::sqrt(1 - std::pow(beta2, double(step)))),
        float(rate / (1 - std::pow(beta1, double(step)))),
    };
    const auto launch = count <= 90 ? launch_all<Few> : launch_all<Many>;
    launch(params, grads, means, squares, factors, count, width, stream);
}
