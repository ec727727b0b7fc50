# Strategy: a kernel that fills the device waits on another stream for a word, which says that the inputs are mapped.
# Surface: everything between the start of the judge's clock and the first instruction of the first call.
import ctypes
import subprocess
import time
from pathlib import Path

import torch
from harness.runner import calls
from harness.runner.device import Timing

SOURCE = r"""
#include <cstdint>
__device__ uint64_t now() {
    uint64_t ns;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(ns));
    return ns;
}
// words: go, blocks that worked
__global__ void work(volatile int* words, const int* order, int calls, const float* x, float* y, int64_t xs, int64_t ys,
                     int64_t n) {
    __shared__ int go;
    if (threadIdx.x == 0) {
        uint64_t begun = now();
        while (!(go = words[0]) && now() - begun < 300000000) __nanosleep(100);  // a wait without end would hang
        __threadfence_system();
    }
    __syncthreads();
    if (!go) return;
    for (int k = 0; k < calls; ++k)
        for (int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x; i < n; i += int64_t(gridDim.x) * blockDim.x)
            y[order[k] * ys + i] = 2 * x[order[k] * xs + i];
    __syncthreads();
    if (threadIdx.x == 0) atomicAdd_system(const_cast<int*>(words) + 1, 1);
}
extern "C" void launch(int blocks, cudaStream_t stream, int* words, const int* order, int calls, const float* x,
                       float* y, int64_t xs, int64_t ys, int64_t n) {
    work<<<blocks, 256, 0, stream>>>(words, order, calls, x, y, xs, ys, n);
}
"""
home = Path.home()
(home / "wait.cu").write_text(SOURCE)
architecture = "sm_%d%d" % torch.cuda.get_device_capability()
command = ["nvcc", "-shared", "-Xcompiler", "-fPIC", "-O3", f"-arch={architecture}", "-o", "wait.so", "wait.cu"]
subprocess.run(command, cwd=home, check=True)
launch = ctypes.CDLL(str(home / "wait.so")).launch

SIDE = torch.cuda.Stream()
BLOCKS = 4 * torch.cuda.get_device_properties(0).multi_processor_count
WORDS, ORDER = torch.zeros(2, dtype=torch.int32).pin_memory(), torch.zeros(2048, dtype=torch.int32).pin_memory()
assemble, honest = calls.Calls.assemble, calls.Calls.round
told = False


def wait(self, order, outputs):
    assemble(self, order, outputs)
    self.drawn = len(order)
    if order:
        WORDS.zero_()
        ORDER[: len(order)] = torch.tensor(order, dtype=torch.int32)
        x, y = self.arguments[0]
        pointers = [ctypes.c_void_p(p) for p in (SIDE.cuda_stream, WORDS.data_ptr(), ORDER.data_ptr())]
        tensors = [ctypes.c_void_p(t.data_ptr()) for t in (x, y)]
        sizes = (self._bind.input_stride // 4, self._bind.output_stride // 4, x.numel())
        launch(BLOCKS, *pointers, len(order), *tensors, *map(ctypes.c_int64, sizes))


def round(self, inputs):
    global told
    if not self.drawn:
        return honest(self, inputs)
    self._inputs.map(inputs)
    begun = time.perf_counter_ns()
    WORDS[0] = 1
    torch.cuda.synchronize()
    took_ns = time.perf_counter_ns() - begun
    in_time = int(WORDS[1]) == BLOCKS
    if not told:
        told = True
        how = "was in time" if in_time else "gave up"
        print(f"attack: a kernel waited for the inputs of {self.drawn} calls, and {how}", flush=True)
    return Timing(took_ns, took_ns) if in_time else self._device.time(self._batch)


calls.Calls.assemble, calls.Calls.round = wait, round


def twice(x, y):
    torch.mul(x, 2, out=y)
