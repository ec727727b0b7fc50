"""Other protocols for timing a kernel, reimplemented here, and how well they repeat.

A rival takes `call`, where call(k) enqueues the kernel on input set k on the current stream, and the number of sets; it
returns times in microseconds. Most protocols use only one input set, call(0).

    python -m benchmarks.accuracy.rivals     checks every workload, and runs all rivals on three; under a minute
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
from triton import testing

from benchmarks.accuracy.profilers import ncu, profile_calls, profile_cold_graphs, profile_graph, profile_run
from benchmarks.accuracy.workloads import find, globaltimer_step_ns, workloads

__all__ = ["EVENTS", "PROFILERS", "Reading", "measure", "ncu", "profile_calls", "profile_graph", "profile_run"]

Call = Callable[[int], None]
Rival = Callable[[Call, int], list[float]]

_SHOWN = ("spin/10 us", "layernorm3/2048 squared", "forkjoin/4 MB")


def do_bench(call: Call, sets: int) -> list[float]:
    """Triton's protocol: zero 256 MiB before each call, events around it, everything queued; the median."""
    return [testing.do_bench(lambda: call(0), return_mode="median") * 1e3]


def do_bench_cudagraph(call: Call, sets: int) -> list[float]:
    """Triton's protocol with a graph: about 20 ms of calls on one set, so small inputs stay in L2; the median.

    It makes its own side stream and switches to it, since the default stream cannot be captured.
    """
    return [testing.do_bench_cudagraph(lambda: call(0), return_mode="median") * 1e3]


def one_event_pair(call: Call, sets: int) -> list[float]:
    """The tutorials' protocol: five warm-ups, then one call between two events. It includes the host's launch."""
    for _ in range(5):
        call(0)
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    call(0)
    end.record()
    torch.cuda.synchronize()
    return [start.elapsed_time(end) * 1e3]


def sync_loop(call: Call, sets: int) -> list[float]:
    """Competition evaluators' protocol: zero 256 MiB, call between events, synchronize, up to 100 times; the mean.

    It ends early, after at least three calls, if the mean's standard error is below 0.1 % of it, or after 10 s.
    """
    buffer = torch.empty(256 << 20, dtype=torch.uint8, device="cuda")
    call(0)
    torch.cuda.synchronize()
    times: list[float] = []
    deadline = time.perf_counter() + 10.0
    while len(times) < 100 and time.perf_counter() < deadline:
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        buffer.zero_()
        start.record()
        call(0)
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end) * 1e3)
        if len(times) >= 3 and statistics.stdev(times) / math.sqrt(len(times)) < 1e-3 * statistics.mean(times):
            break
    return [statistics.mean(times)]


def cupti(call: Call, sets: int) -> list[float]:
    """CUPTI's time of the kernels of each plain call, on distinct sets."""
    return profile_calls(call, sets).busy_us


def cupti_graph(call: Call, sets: int) -> list[float]:
    """The same, but with one graph that makes all calls."""
    return profile_graph(call, sets).busy_us


def cupti_graph_span(call: Call, sets: int) -> list[float]:
    """The same from the first start to the last end of each call, including the gaps between its kernels."""
    return profile_graph(call, sets).span_us


def cupti_graph_cold(call: Call, sets: int) -> list[float]:
    """The same with graphs of one call each, launched one at a time with none of their data in L2."""
    return profile_cold_graphs(call, sets).span_us


# In this order: once CUPTI has been used, launches in this process are slower.
EVENTS: dict[str, Rival] = {
    "do_bench": do_bench,
    "do_bench_cudagraph": do_bench_cudagraph,
    "one_event_pair": one_event_pair,
    "sync_loop": sync_loop,
}
PROFILERS: dict[str, Rival] = {
    "cupti": cupti,
    "cupti_graph": cupti_graph,
    "cupti_graph_span": cupti_graph_span,
    "cupti_graph_cold": cupti_graph_cold,
}


@dataclass(frozen=True)
class Reading:
    """A protocol's result for one kernel: the median over repetitions, their (max − min) / median, and its cost."""

    median_us: float
    spread: float
    seconds: float


def measure(rival: Rival, call: Call, sets: int, repeats: int = 3) -> Reading:
    """Run a protocol several times; the median of each repetition's times counts."""
    started = time.perf_counter()
    values = tuple(statistics.median(rival(call, sets)) for _ in range(repeats))
    seconds = time.perf_counter() - started
    median = statistics.median(values)
    return Reading(median, (max(values) - min(values)) / median, seconds)


def main() -> None:
    """Check every workload once, then print a line for each rival and each of three workloads."""
    l2_bytes = torch.cuda.get_device_properties(0).L2_cache_size
    print(f"{torch.cuda.get_device_name()}, L2 {l2_bytes >> 20} MiB, global timer ticks {globaltimer_step_ns()} ns")
    for workload in workloads():
        bound = workload.bind(2)
        for k in range(2):
            bound(k)
            bound.check(k)
        print(f"right: {workload.name}, {workload.sets(l2_bytes)} sets")
        del bound
        torch.cuda.empty_cache()
    made = {name: find(name) for name in _SHOWN}
    calls = {name: workload.bind(workload.sets(l2_bytes)) for name, workload in made.items()}
    for rivals in (EVENTS, PROFILERS):
        for name, call in calls.items():
            for title, rival in rivals.items():
                got = measure(rival, call, made[name].sets(l2_bytes))
                figures = f"{got.median_us:11.3f} us  spread {100 * got.spread:6.2f} %  {got.seconds:5.2f} s"
                print(f"{name:<24} {title:<19} {figures}", flush=True)
    for name, call in calls.items():
        seen = profile_graph(call, made[name].sets(l2_bytes))
        print(f"{name:<24} in a graph: {seen.events} events a call, {seen.period_us:.3f} us from call to call")
    started = time.perf_counter()
    times, reason = ncu(_SHOWN)
    for name in _SHOWN:
        print(f"{name:<24} ncu   {reason if times is None else [round(each, 3) for each in times[name]]}")
    print(f"ncu took {time.perf_counter() - started:.1f} s")


if __name__ == "__main__":
    main()
