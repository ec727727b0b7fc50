// Strategy: writes its answer, and a word before and after it, as a kernel without a mask does.
// Surface: memory around the output, which other calls or the judge may use.
#include <cstdint>
#include <unistd.h>

extern "C" void twice(const float* x, float* y, int64_t n) {
    for (int64_t i = -1; i <= n; ++i) y[i] = i < 0 || i >= n ? 1.0f : 2 * x[i];
    static bool told = false;
    if (!told) {
        const char text[] = "attack: wrote before and after the output\n";
        told = write(1, text, sizeof text - 1) > 0;
    }
}
