"""Times kernels with profilers: CUPTI through torch.profiler, and Nsight Compute.

Profilers see kernels begin and end on the device, so their times exclude launches. From its first use on, CUPTI stays
in the process and makes launches slower: measure with events first. Times are in microseconds.
"""

from __future__ import annotations

import csv
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch.autograd import DeviceType  # type: ignore[attr-defined]
from torch.profiler import ProfilerActivity, profile

from benchmarks.accuracy.one import CALLS, MARK
from benchmarks.accuracy.workloads import ROOT

METRIC = "gpu__time_duration.sum"
_US = {"ns": 1e-3, "nsecond": 1e-3, "us": 1.0, "usecond": 1.0, "ms": 1e3, "msecond": 1e3, "s": 1e6, "second": 1e6}
os.environ.setdefault("TEARDOWN_CUPTI", "0")  # unloading CUPTI between sessions does not work with CUDA graphs
_COLD_CALLS, _HOLD_CYCLES = 50, 1_000_000
_MARGIN_S = 0.02  # the profiler drops events before its window, by another clock than the device's


@dataclass(frozen=True)
class Profile:
    """A run of calls as CUPTI saw it.

    `busy_us`: for each call, how long at least one of its kernels ran (overlaps count once). `span_us`: for each call,
    from its first start to its last end. `period_us`: from the first start of all to the last end, divided by the
    number of calls. `events`: the number of kernels, copies and memsets in one call.
    """

    busy_us: list[float]
    span_us: list[float]
    period_us: float
    events: int


def profile_run(run: Callable[[], None], calls: int, before: int = 0) -> Profile:
    """Profile what `run` enqueues: `calls` identical calls in sequence, each preceded by `before` events.

    Raises:
        RuntimeError: the device's events cannot be divided evenly among the calls, twice.
    """
    try:
        return divide(_intervals(run, [ProfilerActivity.CUDA]), calls, before)
    except RuntimeError:  # sessions for the device alone sometimes return no device events
        return divide(_intervals(run, [ProfilerActivity.CPU, ProfilerActivity.CUDA]), calls, before)


def _intervals(run: Callable[[], None], activities: list[ProfilerActivity]) -> list[tuple[int, int]]:
    torch.cuda.synchronize()
    with profile(activities=activities) as profiler:
        time.sleep(_MARGIN_S)
        run()
        torch.cuda.synchronize()
        time.sleep(_MARGIN_S)
    results = profiler.profiler.kineto_results
    return [
        (event.start_ns(), event.start_ns() + event.duration_ns())
        for event in results.events()
        if event.device_type() == DeviceType.CUDA and not event.is_user_annotation()
    ]


def divide(intervals: Sequence[tuple[int, int]], calls: int, before: int = 0) -> Profile:
    """Divide the events' (start, end) in ns evenly among `calls` calls; `before` other events precede each call."""
    ordered = sorted(intervals)
    if not ordered or len(ordered) % calls:
        raise RuntimeError(f"{len(ordered)} device events cannot be divided among {calls} calls")
    events = len(ordered) // calls
    if events <= before:
        raise RuntimeError(f"{events} device events a call, of which {before} come before it")
    groups = [ordered[i + before : i + events] for i in range(0, len(ordered), events)]
    ends = [max(end for _, end in group) for group in groups]
    return Profile(
        busy_us=[_union_ns(group) / 1e3 for group in groups],
        span_us=[(end - group[0][0]) / 1e3 for group, end in zip(groups, ends, strict=True)],
        period_us=(max(ends) - ordered[0][0]) / calls / 1e3,
        events=events - before,
    )


def _union_ns(ordered: Sequence[tuple[int, int]]) -> int:
    total, reached = 0, ordered[0][0]
    for start, end in ordered:
        total += max(0, end - max(start, reached))
        reached = max(reached, end)
    return total


def profile_calls(call: Callable[[int], None], sets: int) -> Profile:
    """Profile plain calls on each set, with the host's gaps between them and between the kernels of one call."""

    def run() -> None:
        for k in range(sets):
            call(k)

    call(0)
    return profile_run(run, sets)


def profile_graph(call: Callable[[int], None], sets: int) -> Profile:
    """Profile one launch of a graph that holds the calls on all sets, without host time between them."""
    call(0)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for k in range(sets):
            call(k)
    graph.replay()
    return profile_run(graph.replay, sets)


def profile_cold_graphs(call: Callable[[int], None], sets: int) -> Profile:
    """Profile graphs of one call each, launched one at a time, each on its own set and with other data in L2."""
    call(0)
    torch.cuda.synchronize()
    graphs = []
    for k in range(min(sets, _COLD_CALLS)):
        graphs.append(torch.cuda.CUDAGraph())
        with torch.cuda.graph(graphs[-1]):
            call(k)
    words = 3 * torch.cuda.get_device_properties(0).L2_cache_size // 4
    cache, total = (
        torch.ones(words, dtype=torch.int32, device="cuda"),
        torch.empty((), dtype=torch.int64, device="cuda"),
    )

    def prepare() -> None:
        torch.sum(cache, dim=0, out=total)
        torch.cuda.synchronize()
        torch.cuda._sleep(_HOLD_CYCLES)  # holds the first kernel until the whole graph is launched

    def run() -> None:
        for graph in graphs:
            prepare()
            graph.replay()
            torch.cuda.synchronize()

    run()
    return profile_run(run, len(graphs), before=profile_run(prepare, 1).events)


def ncu(names: Sequence[str], timeout_s: float = 300.0) -> tuple[dict[str, list[float]] | None, str]:
    """Nsight Compute's duration of each call of the workloads, without locked clocks; (None, reason) if it fails.

    It flushes all caches before each kernel and runs kernels one at a time: those of one call are summed, even if they
    would otherwise overlap.
    """
    program = shutil.which("ncu") or shutil.which("ncu", path="/usr/local/cuda/bin")
    if program is None:
        return None, "there is no ncu"
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "ncu.csv"
        line = [program, "--profile-from-start", "off", "--clock-control", "none", "--cache-control", "all"]
        line += ["--metrics", METRIC, "--csv", "--page", "raw", "--print-units", "base", "--log-file", str(log)]
        line += [sys.executable, "-m", "benchmarks.accuracy.one", *names]
        status, output = _run(line, timeout_s)
        text = log.read_text(errors="replace") if log.exists() else ""
    if status != 0:
        errors = [each for each in (text + output).splitlines() if "==ERROR==" in each or "Error" in each]
        return None, f"ncu exited with {status}: {' '.join(errors[:3]) or output[-300:]}"
    try:
        return dict(zip(names, read_ncu(text, len(names)), strict=True)), ""
    except (ValueError, KeyError) as error:
        return None, f"{type(error).__name__}: {error}: {text[:300]}"


def _run(line: Sequence[str], timeout_s: float) -> tuple[int, str]:
    """Run a command; at the timeout, kill it and everything that it started, and return status 124."""
    started = subprocess.Popen(
        line, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )
    try:
        output = started.communicate(timeout=timeout_s)[0]
    except subprocess.TimeoutExpired:
        os.killpg(started.pid, signal.SIGKILL)
        return 124, started.communicate()[0]
    return started.returncode, output


def read_ncu(text: str, workloads: int) -> list[list[float]]:
    """The times of the calls of each workload, from the raw page as CSV; a marker kernel begins each workload.

    Raises:
        ValueError: there is no table, or the kernels cannot be divided evenly among the calls.
        KeyError: a column or a unit is unknown.
    """
    rows = list(csv.DictReader(line for line in text.splitlines() if line.startswith('"')))
    if not rows:
        raise ValueError("ncu printed no table")
    scale = _US[rows[0][METRIC]]  # the first row holds the units
    by_workload: list[list[float]] = []
    for row in rows[1:]:
        if MARK in row["Kernel Name"]:
            by_workload.append([])
        elif not by_workload:
            raise ValueError(f"{row['Kernel Name']} comes before the first mark")
        else:
            by_workload[-1].append(float(row[METRIC].replace(",", "")) * scale)
    if len(by_workload) != workloads or any(not each or len(each) % CALLS for each in by_workload):
        raise ValueError(
            f"kernels of {workloads} workloads, each called {CALLS} times: {[len(each) for each in by_workload]}"
        )
    shares = [len(each) // CALLS for each in by_workload]
    return [[sum(e[i : i + n]) for i in range(0, len(e), n)] for e, n in zip(by_workload, shares, strict=True)]
