"""What the usual protocols say of a kernel, beside the time of the kernel itself."""

import time

from benchmarks.headlines.bench import Bench
from benchmarks.headlines.finding import Claim, Finding, Row, judged, ratio

WORKLOADS = ("spin/10 us", "copy/1 MB", "softmax_4096/4096 squared", "matmul_bf16/4096")
TRIALS = 10


def measure(bench: Bench) -> Finding:
    bench.needs_gpu("events are a GPU's")
    from benchmarks.accuracy.rivals import one_event_pair
    from benchmarks.accuracy.workloads import find

    rows: list[Row] = []
    for workload in map(find, WORKLOADS):
        problem = workload.problem.model_copy(update={"benchmarks": (workload.case,)})
        [case] = bench.grade(problem, workload.source).benchmarks
        score = case.score
        truth = Row(workload.name, "score", score.median_ns / 1e3, "µs", score.low_ns / 1e3, score.high_ns / 1e3)
        call = workload.bind(4)
        pair = sorted(one_event_pair(call, 4)[0] for _ in range(TRIALS))
        host = sorted(host_clock(call) for _ in range(TRIALS))
        rows.append(truth)
        for name, times in (("one pair of events", pair), ("host clock", host)):
            told = Row(workload.name, name, times[TRIALS // 2], "µs", times[0], times[-1])
            rows += [told, ratio(told, truth, f"{name} ÷ score")]
    return judged(rows, "one pair of events ÷ score", at_least=0.95, at_most=1.05)


def host_clock(call: object) -> float:
    """The tutorials' other protocol: five warm-ups, then one call by the host's clock up to its end; in µs."""
    import torch

    assert callable(call)
    for _ in range(5):
        call(0)
    torch.cuda.synchronize()
    began = time.perf_counter()
    call(0)
    torch.cuda.synchronize()
    return (time.perf_counter() - began) * 1e6


CLAIM = Claim(
    "events",
    "GPU Mode, lecture 1; a course's chapter on benchmarking",
    "After five warm-up calls, a pair of events around one call gives a kernel's time, which the host's clock does not "
    "(within 5 %).",
    measure,
)
