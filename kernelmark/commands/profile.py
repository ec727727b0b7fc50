"""`kernelmark profile`: shows where the time of a kernel goes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kernelmark.commands import complete
from kernelmark.commands.left_out import say_left_out
from kernelmark.commands.options import (
    beside_option,
    combined,
    device_option,
    load_settings,
    refuse_unwritable,
    sandbox_option,
)
from kernelmark.text.terminal import print_lines, say

if TYPE_CHECKING:
    from harness.wire.commands import Profile
    from kernelmark.diagnostics.profiling.views import ViewName
    from kernelmark.project.settings import Settings


_SCHEDULE = re.compile(r"(wait|warmup|active|repeat)=(\d{1,6})")
_COUNTS = {"wait": (0, 32), "warmup": (0, 32), "active": (1, 32), "repeat": (1, 4)}  # as `commands.Profile` has them
_PARTS = {
    "torch": (
        "torch.profiler's traces, and tables by operator and input shape. "
        "Of these six parts, only those named are made. [default: all]"
    ),
    "stacks": "Flame graphs, and tables by call stack and by module.",
    "memory": "Memory over time, and torch's snapshot.",
    "ncu": "Nsight Compute's report.",
    "code": "What was compiled, from Triton's IR to SASS.",
    "sanitize": "What compute-sanitizer finds in FILE, in the visible tests.",
}


@click.command()
@click.argument("problem", shell_complete=complete.problems)
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--case", metavar="NAME", help="Which benchmark. [default: the one that moves the most bytes]")
@click.option(
    "--baseline",
    "baselines",
    multiple=True,
    metavar="NAME",
    shell_complete=complete.baselines,
    help="Also profile this kernel of reference/, and report the speedup over it; repeatable.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("profile"),
    show_default=True,
    metavar="DIR",
    help="Where to write the page, the traces, the flame graphs and the tables.",
)
@click.option(
    "--tensorboard",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Write the traces for TensorBoard's profiler plugin, too; each baseline is a worker.",
)
@click.option(
    "--schedule",
    metavar="wait=N,warmup=N,active=N,repeat=N",
    default="wait=1,warmup=2,active=3,repeat=2",
    show_default=True,
    help="Which calls torch.profiler skips, warms up with and records, and how often.",
)
@click.option(
    "--sort-by",
    metavar="COLUMN",
    help="What torch.profiler's tables are sorted by, such as cpu_time_total. [default: own time on the device]",
)
@click.option(
    "--row-limit", type=click.IntRange(1, 10_000), default=60, show_default=True, help="Rows of each of these tables."
)
@click.option(
    "--sweep",
    metavar="NAME=SIZES",
    help="Instead, time the case at 2 to 32 sizes: cols=128:16384 (doubling), cols=128:4096:128 (steps), cols=100,200.",
)
@combined(
    *(click.option(f"--{name}", "parts", flag_value=name, multiple=True, help=text) for name, text in _PARTS.items())
)
@beside_option
@sandbox_option("How to isolate it.")
@device_option("Where to run it.")
def profile(
    problem: str,
    file: Path,
    case: str | None,
    baselines: tuple[str, ...],
    out: Path,
    tensorboard: Path | None,
    schedule: str,
    sort_by: str | None,
    row_limit: int,
    sweep: str | None,
    parts: tuple[ViewName, ...],
    beside: tuple[Path, ...],
    **flags: str | None,
) -> int:
    """Show where the time of FILE goes on one benchmark of PROBLEM, and write a page about it.

    FILE is graded on this case first, which measures the time and the kernels. Then torch.profiler and Nsight Compute
    profile calls in other sandboxes, the compiled code is collected, and compute-sanitizer runs the visible tests.
    Without a GPU, Nsight Compute and compute-sanitizer are skipped. Nothing is recorded.

    Exit status: 0 if a profile was written, even if parts of it failed; if FILE is not accepted, as for `submit`.
    """
    from kernelmark.diagnostics import profiling
    from kernelmark.diagnostics.profiling import folder
    from kernelmark.text import profiles, show
    from kernelmark.text.progress import Reporter

    request = _request(schedule, sort_by, row_limit)
    refuse_unwritable("--out", out)
    refuse_unwritable("--tensorboard", tensorboard)
    settings = load_settings(problem, effort="quick", baselines=baselines or ("none",), **flags)
    if sweep is not None:
        return _swept(settings, problem, (file, *beside), case, sweep, out)
    with Reporter() as reporter:
        found = profiling.profile(settings, problem, (file, *beside), case, parts, reporter.report, request)
    verdict = found.verdict
    if verdict is not None and verdict.score is None:
        print_lines(show.verdict(verdict, record=False, profiled=True))
        say_left_out(verdict, (file, *beside))
        return verdict.outcome.exit_code
    measured = list(profiles.measured(verdict)) if verdict is not None else []
    if verdict is None:
        say(f"{file.name} cannot run on this machine, so there are no times, only its compiled code")
    lines = [*measured, *profiles.counted([(kernel.name, kernel.nsight) for kernel in found.profiles])]
    lines += profiles.claimed([(kernel.name, kernel.torch) for kernel in found.profiles])
    for kernel in found.profiles:
        lines += profiles.sanitized(kernel.sanitized)
    if lines:
        print_lines(lines)
    for kernel in found.profiles:
        for part, why in kernel.missing.items():
            say(f"no {part} for {kernel.name}: {why}")
    written = folder.write(found, out, measured)
    if tensorboard is not None:
        folder.tensorboard(found, tensorboard)
    say(f"wrote {written[0]} and {len(written) - 1} files next to it")
    return 0


def _request(schedule: str, sort_by: str | None, rows: int) -> Profile:
    """The request to torch.profiler; raises a UsageError if the schedule or the name of the column is not valid."""
    from harness.errors import UsageError, nearest
    from harness.profiling.torch_profile import EVERYTHING
    from harness.wire.commands import SORTS

    if sort_by is not None and sort_by not in SORTS:
        raise UsageError("--sort-by", f"{sort_by!r} is not a column of torch.profiler", nearest(sort_by, list(SORTS)))
    parsed = dict(_SCHEDULE.findall(schedule))
    if schedule != ",".join(f"{name}={count}" for name, count in parsed.items()) or not parsed:
        raise UsageError("--schedule", f"{schedule!r} is no schedule", "write it as wait=1,warmup=1,active=2,repeat=1")
    counts = {"wait": 1, "warmup": 2, "active": 3, "repeat": 2} | {name: int(count) for name, count in parsed.items()}
    for name, (low, high) in _COUNTS.items():
        if not low <= counts[name] <= high:
            raise UsageError("--schedule", f"{name} is {counts[name]}, and not {low} to {high}")
    return replace(
        EVERYTHING,
        wait=counts["wait"],
        warmup=counts["warmup"],
        active=counts["active"],
        repeats=counts["repeat"],
        sort_by=sort_by or "",
        rows=rows,
    )


def _swept(settings: Settings, problem: str, files: Sequence[Path], case: str | None, sizes: str, out: Path) -> int:
    from kernelmark.diagnostics.profiling import sweep
    from kernelmark.text import profiles, show, times
    from kernelmark.text.progress import Reporter

    chosen = sweep.Sizes.parse(sizes)
    with Reporter() as reporter:
        verdict, points = sweep.sweep(settings, problem, files, case, chosen, reporter.report)
    if verdict.score is None:
        print_lines(show.verdict(verdict, record=False, profiled=True))
        say_left_out(verdict, files)
        return verdict.outcome.exit_code
    print_lines(profiles.rates(chosen.parameter, *sweep.rate(points)))
    for doubt in times.doubts(verdict):
        print_lines([f"doubt  {doubt}"])
    title = f"{files[0].name} on {verdict.problem.slug}, {verdict.environment.device_name}"
    for path in sweep.write(out, title, chosen.parameter, points):
        say(f"wrote {path}")
    return 0
