"""How many CUDA contexts a second all processes of a machine can create, by their number of hardware queues, and how
long an allocation takes meanwhile.

    python -m benchmarks.contexts --out benchmarks/results/contexts.json

The driver creates contexts under a lock that all processes share, so more processes hardly create more of them. Each
context is created by a process of its own, which is then killed, as sandboxes are. Another process has a context all
the time, as the judge has, and allocates and frees 64 MiB with `harness.arena`. Times are medians. Needs a GPU, and no
sandbox.
"""

from __future__ import annotations

import argparse
import ctypes
import itertools
import multiprocessing
import os
import signal
import time
from multiprocessing.queues import SimpleQueue
from pathlib import Path

from benchmarks.scratch import report
from harness import stats
from harness.arena import make_arena
from harness.device import DEVICES

QUEUES = (1, 2, 4, 8)
PROCESSES = (1, 8)
NBYTES = 64 << 20
PAUSE_S = 0.0002


def _context() -> None:
    """In a process that has not used the driver: create a context, allocate something, and wait for the end."""
    driver = ctypes.CDLL("libcuda.so.1")
    context, device, address = ctypes.c_void_p(), ctypes.c_int(), ctypes.c_uint64()
    assert driver.cuInit(0) == 0
    assert driver.cuDeviceGet(ctypes.byref(device), 0) == 0
    assert driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device) == 0
    assert driver.cuCtxSetCurrent(context) == 0
    assert driver.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(1 << 20)) == 0


def _created(end: float, times: SimpleQueue[list[float]]) -> None:
    """Create one context after the other until `end`; the seconds of each, with the end of its process."""
    seconds = []
    while (begun := time.monotonic()) < end:
        up, ready = os.pipe()
        child = os.fork()
        if not child:
            _context()
            os.write(ready, b"1")
            signal.pause()
        os.close(ready)
        assert os.read(up, 1), "no context can be created"
        os.close(up)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        seconds.append(time.monotonic() - begun)
    times.put(seconds)


def _allocated(started: SimpleQueue[bool], end: SimpleQueue[float], times: SimpleQueue[list[float]]) -> None:
    make_arena("cuda", NBYTES, read_only=False).close()
    started.put(True)
    seconds, last = [], end.get()
    while (begun := time.monotonic()) < last:
        make_arena("cuda", NBYTES, read_only=False).close()
        seconds.append(time.monotonic() - begun)
        time.sleep(PAUSE_S)
    times.put(seconds)


def measured(queues: int, processes: int, seconds: float) -> dict[str, float]:
    """One row; with no processes, the allocations of one that is alone."""
    fork = multiprocessing.get_context("fork")
    started, last, allocations, creations = (fork.SimpleQueue() for _ in range(4))
    judge = fork.Process(target=_allocated, args=(started, last, allocations))
    judge.start()  # with the default number of queues
    started.get()
    os.environ["CUDA_DEVICE_MAX_CONNECTIONS"] = str(queues)
    end = time.monotonic() + seconds
    last.put(end)
    creators = [fork.Process(target=_created, args=(end, creations)) for _ in range(processes)]
    for each in creators:
        each.start()
    of_each = [creations.get() for _ in creators]
    allocated = allocations.get()
    for each in (judge, *creators):
        each.join()
    del os.environ["CUDA_DEVICE_MAX_CONNECTIONS"]
    every = list(itertools.chain.from_iterable(of_each))
    row: dict[str, float] = {"queues": queues, "processes": processes}
    if every:
        row["context_ms"] = round(1e3 * stats.median(every), 1)
        row["contexts_a_second"] = round(1e3 * processes / row["context_ms"], 1)
    return {**row, "allocation_ms": round(1e3 * stats.median(allocated), 2)}


def main() -> None:
    """Measure, print a line for each row, write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=3, help="for each row")
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    rows = []
    for queues, processes in ((8, 0), *((queues, count) for queues in QUEUES for count in PROCESSES)):
        rows.append(measured(queues, processes, arguments.seconds))
        print(rows[-1], flush=True)
    facts = DEVICES["cuda"].facts()  # after all forks: the driver does not survive one
    report(
        "contexts",
        "CUDA contexts of all processes together, and an allocation of another process meanwhile",
        arguments.out,
        facts.known() | {"processors": len(os.sched_getaffinity(0)), "rows": rows},
    )


if __name__ == "__main__":
    main()
