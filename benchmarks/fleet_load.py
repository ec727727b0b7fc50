"""Many jobs through one fleet on a CPU, and whether it grows: `python -m benchmarks.fleet_load --jobs 2000`.

The jobs are tiny kernels, graded in bubblewrap with the effort "screen". Of ten, five are right, two wrong, one crashes
its process, one ends it, and one has the source of an earlier one. Before, after every 100 results and after the fleet
was closed it is measured: memory, open files and threads of the dispatcher and of the worker, processes, control
groups, and files in the folder of temporary files.

Writes `benchmarks/results/fleet_load.json`; exits with 1 unless every job had exactly one result, as expected of it,
nothing was left behind, and nothing grew. To grow is to be larger at the end than after the first quarter of the
jobs: by more than `--growth` MiB of memory, or 8 files, threads or processes. Before that, memory grows until each of
the worker's threads has graded a few times, since the C library keeps what a thread has freed for that thread.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.scratch import left_behind, project, report
from harness.sandbox.tree import tree
from harness.verdict import Outcome
from kernelmark import Fleet, Job, JobResult
from tests.leftovers import groups, leftovers

RESULT = Path(__file__).parent / "results" / "fleet_load.json"
RIGHT = "import torch\ndef twice(x, y): torch.mul(x, 2, out=y)\n"
KINDS = {
    "right": (RIGHT, Outcome.ACCEPTED),
    "wrong": ("def twice(x, y): y.copy_(3 * x)\n", Outcome.WRONG_ANSWER),
    "crashes": ("import ctypes\nctypes.string_at(0)\n", Outcome.RUNTIME_ERROR),
    "ends": ("import os\nos._exit(3)\n", Outcome.RUNTIME_ERROR),
}
TEN = ("right", "wrong", "right", "crashes", "right", "duplicate", "wrong", "right", "ends", "right")
MOST_MORE = 8


def jobs(count: int) -> Iterator[Job]:
    """Each with a source of its own, but for the duplicates, which have that of the job five before."""
    for number in range(count):
        kind, of = TEN[number % 10], number
        if kind == "duplicate":
            kind, of = TEN[number % 10 - 5], number - 5
        yield Job(problem="double", submission=f"{KINDS[kind][0]}\n# {of}\n", key=(number, kind))


def measured(results: int, begun: float) -> dict[str, Any]:
    """What this process and those below it use now."""
    below = tree({os.getpid()}) - {os.getpid()}
    workers = [pid for pid in below if b"kernelmark.grading.fleet.worker" in _read(pid, "cmdline")]
    folder = Path(tempfile.gettempdir())
    return {
        "results": results,
        "seconds": round(time.monotonic() - begun, 1),
        "dispatcher": _used(os.getpid()),
        "worker": _used(workers[0]) if workers else {},
        "processes": len(below),
        "control_groups": len(groups([*workers, os.getpid()])),
        "temporary_files": sum(path.suffix != ".lock" for path in folder.iterdir()),
    }


def _used(pid: int) -> dict[str, int]:
    fields = dict(line.split(":", 1) for line in _read(pid, "status").decode().splitlines())
    return {
        "rss_mib": int(fields["VmRSS"].split()[0]) >> 10,
        "open_files": len(list(Path(f"/proc/{pid}/fd").iterdir())),
        "threads": int(fields["Threads"]),
    }


def _read(pid: int, name: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""  # it has just ended


def wrong_result(result: JobResult) -> str:
    """What is wrong with a result; "" if it is as expected."""
    assert isinstance(result.job.key, tuple)
    number, kind = result.job.key
    if result.verdict is None:
        return f"{number} {kind}: {result.error}"
    fits = result.verdict.outcome is KINDS[kind][1]
    return "" if fits else f"{number} {kind}: {result.verdict.outcome}: {result.verdict.message}"


def growth(early: dict[str, Any], late: dict[str, Any], memory_mib: int) -> list[str]:
    """What is larger than it was."""
    found = []
    for who in ("dispatcher", "worker"):
        for what, most in (("rss_mib", memory_mib), ("open_files", MOST_MORE), ("threads", MOST_MORE)):
            if late[who][what] > early[who][what] + most:
                found.append(f"{what} of the {who}: {early[who][what]}, then {late[who][what]}")
    found += [
        f"{what}: {early[what]}, then {late[what]}"
        for what in ("processes", "control_groups", "temporary_files")
        if late[what] > early[what] + MOST_MORE
    ]
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=2000)
    parser.add_argument("--slots", type=int, default=1)
    parser.add_argument("--every", type=int, default=100, help="results between two measurements")
    parser.add_argument("--growth", type=int, default=128, help="MiB of memory by which a process may grow")
    parser.add_argument("--out", type=Path, default=RESULT)
    given = parser.parse_args()
    out = given.out.resolve()
    numbers: Counter[int] = Counter()
    outcomes: Counter[str] = Counter()
    wrong: list[str] = []
    home = Path.cwd()
    with project() as root:
        os.chdir(root)
        before, begun = leftovers(), time.monotonic()
        series = [measured(0, begun)]
        with Fleet(device="cpu", sandbox="bwrap", slots=given.slots) as fleet:
            for result in fleet.grade_many(jobs(given.jobs), effort="screen"):
                assert isinstance(result.job.key, tuple)
                numbers[result.job.key[0]] += 1
                outcomes["none" if result.verdict is None else str(result.verdict.outcome)] += 1
                wrong += filter(None, [wrong_result(result)])
                done = numbers.total()
                if done % given.every == 0 or done == given.jobs // 4:
                    series.append(measured(done, begun))
                    print(f"{series[-1]}", file=sys.stderr, flush=True)
            series.append(measured(numbers.total(), begun))
            status = fleet.status()
        seconds = time.monotonic() - begun
        remains = left_behind(before)
        series.append(measured(numbers.total(), begun))
        os.chdir(home)
    early = next(point for point in series if point["results"] >= max(1, given.jobs // 4))
    violations = {
        "lost": sorted(set(range(given.jobs)) - set(numbers)),
        "doubled": [number for number, times in numbers.items() if times > 1],
        "not_as_expected": wrong,
        "grew": growth(early, series[-2], given.growth),
        "left_behind": remains,
        "still_there": [what for what in ("processes", "control_groups", "temporary_files") if series[-1][what]],
    }
    figures = {
        "jobs": given.jobs,
        "slots": given.slots,
        "graded": status.done,
        "outcomes": dict(outcomes),
        "seconds": round(seconds, 1),
        "results_a_minute": round(60 * given.jobs / seconds, 1),
        "series": series,
        "held": not any(violations.values()),
        **violations,
    }
    report("fleet_load", "many jobs through a fleet on a CPU, and what it uses meanwhile", out, figures)
    return 0 if figures["held"] else 1


if __name__ == "__main__":
    sys.exit(main())
