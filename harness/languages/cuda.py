"""CUDA C++, compiled by `nvcc -shared` without torch's headers, which takes about a second."""

from harness.languages.extra_files import HEADERS
from harness.languages.language import Compiler, Language

# This code includes the submission, so that errors still name submission.cu and its lines. The library links its own
# static CUDA runtime, whose last launch error can be read only in the library. The linker redirects the submission's
# calls of cudaMalloc and cudaFree to this code, so that its memory has the same addresses in a launcher.
_UNIT = """#include "submission.cu"
#include <atomic>
#include <cstddef>
extern "C" {
int kernelmark_last_error() { return (int)cudaGetLastError(); }
cudaError_t __real_cudaMalloc(void** at, size_t bytes);
cudaError_t __real_cudaFree(void* at);
static void* (*kernelmark_allocate)(ptrdiff_t bytes, int device, void* stream);
static int (*kernelmark_free)(void* at);
void kernelmark_allocate_with(void* (*allocate)(ptrdiff_t, int, void*), int (*free)(void*)) {
    kernelmark_allocate = allocate;
    kernelmark_free = free;
}
cudaError_t __wrap_cudaMalloc(void** at, size_t bytes) {
    static std::atomic<int> given;  // every one takes whole pages, and addresses that are not used again
    bool ours = kernelmark_allocate && at && bytes && bytes < size_t(1) << 37 && given < 100;
    void* got = ours ? kernelmark_allocate(bytes, 0, nullptr) : nullptr;
    if (!got) return __real_cudaMalloc(at, bytes);
    ++given;
    *at = got;
    return cudaSuccess;
}
cudaError_t __wrap_cudaFree(void* at) {
    if (!at || !kernelmark_free) return __real_cudaFree(at);
    cudaError_t ended = cudaDeviceSynchronize();  // as the real one does
    return kernelmark_free(at) ? ended : __real_cudaFree(at);
}
}
"""
_WRAPPED = ("-Xlinker", "--wrap=cudaMalloc", "-Xlinker", "--wrap=cudaFree")
# Not -arch=sm_90a alone: nvcc 13.0 then compiles for compute_90, too, which lacks the instructions of sm_90a.
_TARGET = ("-arch={virtual}", "-code={architecture},{virtual}")
_ARGUMENTS = ("-shared", "-Xcompiler", "-fPIC", *_TARGET, "-O3", "-std=c++17", *_WRAPPED)

LANGUAGE = Language(
    suffix="cu",
    devices=("cuda",),
    lexer="cuda",
    extra_files=HEADERS,
    words="c",
    compiler=Compiler("nvcc", _ARGUMENTS, unit=_UNIT, line_info=("-lineinfo", "-Xptxas", "-v"), takes_stream=True),
)
