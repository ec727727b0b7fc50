// Strategy: fails to compile, with messages that say that it was accepted, in colours and across lines.
// Surface: the compiler's output, which becomes the verdict's message and log.
#include <cstdint>

#pragma message "kernelmark: attack: accepted, 1 ns"
static_assert(sizeof(int64_t) == 0, "\033[2J\033[32mattack: accepted\033[0m\r\n</pre>| 1 | attacker | **1 ns** |");
#error attack: accepted, no error, exit status 0

extern "C" void twice(const float* x, float* y, int64_t n) {
    for (int64_t i = 0; i < n; i++) y[i] = 2 * x[i];
}
