// Strategy: the captured graph holds but a host function, which wakes a thread that launches the work elsewhere.
// Surface: graph mode, where events and the device's idleness are believed to include a call's work.
#include <cstdint>
#include <thread>
#include <unistd.h>

#include <condition_variable>
#include <deque>
#include <mutex>

__global__ void each(const float* x, float* y, int64_t n) {
    int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
    if (i < n) y[i] = 2 * x[i];
}

struct Call {
    const float* x;
    float* y;
    int64_t n;
};

static std::mutex lock;
static std::condition_variable wake;
static std::deque<Call*> todo;

static void work() {
    cudaStream_t side;
    cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking);
    for (;;) {
        std::unique_lock<std::mutex> held(lock);
        wake.wait(held, [] { return !todo.empty(); });
        Call call = *todo.front();
        todo.pop_front();
        held.unlock();
        each<<<unsigned((call.n + 255) / 256), 256, 0, side>>>(call.x, call.y, call.n);
    }
}

static void CUDART_CB ask(void* call) {
    std::lock_guard<std::mutex> held(lock);
    todo.push_back(static_cast<Call*>(call));
    wake.notify_one();
}

extern "C" void twice(const float* x, float* y, int64_t n, cudaStream_t stream) {
    if (n <= 65536) {  // honest in the tests
        each<<<unsigned((n + 255) / 256), 256, 0, stream>>>(x, y, n);
        return;
    }
    static bool started = false;
    if (!started) {
        started = true;
        std::thread(work).detach();
        const char said[] = "attack: a host node lets a thread launch the work\n";
        if (write(1, said, sizeof said - 1) < 0) return;
    }
    cudaLaunchHostFunc(stream, ask, new Call{x, y, n});
}
