// Strategy: writes a jump over the first bytes of libc's clock_gettime, so that the whole process has a slow clock.
// Surface: the machine code below every clock of Python.
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static int slow(clockid_t clock, timespec* now) {
    long status = syscall(SYS_clock_gettime, clock, now);
    if (clock == CLOCK_MONOTONIC) {
        int64_t ns = (int64_t(now->tv_sec) * 1000000000 + now->tv_nsec) / 20;
        now->tv_sec = ns / 1000000000;
        now->tv_nsec = ns % 1000000000;
    }
    return int(status);
}

__attribute__((constructor)) static void detour() {
    auto* code = static_cast<uint8_t*>(dlsym(RTLD_DEFAULT, "clock_gettime"));
    auto page = reinterpret_cast<uintptr_t>(code) & ~uintptr_t(4095);
    if (mprotect(reinterpret_cast<void*>(page), 8192, PROT_READ | PROT_WRITE | PROT_EXEC)) return;
#if defined(__x86_64__)
    uint8_t jump[] = {0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xe0};  // mov rax, slow; jmp rax
    auto to = reinterpret_cast<uintptr_t>(&slow);
    std::memcpy(jump + 2, &to, 8);
#else
    uint8_t jump[16] = {0x50, 0, 0, 0x58, 0, 0x02, 0x1f, 0xd6};  // ldr x16, 8; br x16
    auto to = reinterpret_cast<uintptr_t>(&slow);
    std::memcpy(jump + 8, &to, 8);
#endif
    std::memcpy(code, jump, sizeof jump);
    __builtin___clear_cache(reinterpret_cast<char*>(code), reinterpret_cast<char*>(code) + sizeof jump);
    timespec ours, kernels;
    clock_gettime(CLOCK_MONOTONIC, &ours);
    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &kernels);
    if (ours.tv_sec <= kernels.tv_sec / 10) {
        const char said[] = "attack: clock_gettime is ours\n";
        if (write(1, said, sizeof said - 1) < 0) return;
    }
}

extern "C" void product(const float* a, const float* b, float* c, int64_t n) {
    std::memset(c, 0, n * n * sizeof(float));
#pragma omp parallel for
    for (int64_t i = 0; i < n; ++i)
        for (int64_t k = 0; k < n; ++k)
            for (int64_t j = 0; j < n; ++j) c[i * n + j] += a[i * n + k] * b[k * n + j];
}
