"""Formats a profile as plain text: the measured times, and the reports of torch.profiler and other tools.

Trusted code over untrusted text: names go through `visible`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from harness.profiling import nsight
from harness.profiling.stacks import stacks_of
from kernelmark.text import show, times
from kernelmark.text.terminal import INDENT, Line, columns, visible
from leaderboard.text.metrics import launching

if TYPE_CHECKING:
    from harness.profiling.nsight import KernelMetrics, NsightProfile
    from harness.profiling.sanitizer import ToolReport
    from harness.profiling.stacks import Frame
    from harness.profiling.torch_profile import TorchProfile
    from harness.verdict import Verdict

_SHOWN, _LETTERS, _NAME = 8, 80, 40


def measured(verdict: Verdict) -> Iterator[str]:
    """The verdict as for every grading, the kernels of a call, and the host's time to launch them."""
    yield from show.verdict(verdict, record=False, profiled=True)
    for benchmark in verdict.benchmarks:
        if benchmark.mode == "replayed":
            yield ""
            yield Line(f"{INDENT}kernels of a call", "bold")
            yield from times.kernels(benchmark)
            if said := launching(benchmark):
                yield INDENT * 2 + said


def claimed(profiles: Sequence[tuple[str, TorchProfile | None]]) -> Iterator[str]:
    """The functions with the most time of their own, by torch.profiler."""
    for name, profile in profiles:
        for stacks, root in profile.stacks.items() if profile else ():
            if profile and root.value:
                yield ""
                kind = stacks.removesuffix(" stacks")
                title = f"{visible(name)}, by torch.profiler, {kind} time of {profile.calls} calls"
                yield Line(INDENT + title, "bold")
                yield from columns(_hottest(root), right={0, 1}, indent=INDENT * 2)


def rates(parameter: str, unit: str, by_size: Mapping[tuple[str, int], float]) -> Iterator[str]:
    """A table with a row for each size and a column for each kernel, from rates by kernel and size."""
    kernels, sizes = (list(dict.fromkeys(key)) for key in zip(*by_size, strict=True))
    rows = [(str(size), *(f"{by_size[kernel, size]:.4g}" for kernel in kernels)) for size in sizes]
    head = (visible(parameter), *(f"{visible(kernel)}, {unit}" for kernel in kernels))
    yield from columns(rows, head=head, right=range(len(head)))


def counted(profiles: Sequence[tuple[str, NsightProfile | None]]) -> Iterator[str]:
    """Each kernel's use of the device by Nsight Compute, with all profiles in one table."""
    rows = []
    for name, profile in profiles:
        for kernel in profile.kernels[:_SHOWN] if profile else ():
            _, *cells = use(kernel)
            rows.append((visible(name), visible(kernel.name)[:_NAME], *cells))
    if rows:
        yield ""
        yield Line(f"{INDENT}by Nsight Compute", "bold")
        yield from columns(rows, head=("of", *USE), right={2, 3, 4, 5}, indent=INDENT * 2)


USE = ("kernel", "time", "memory", "arithmetic", "occupancy", "bound by")


def use(kernel: KernelMetrics) -> tuple[str, ...]:
    """A kernel's use of the device by Nsight Compute, as cells below `USE`; its name is untrusted."""
    shares = (kernel.percent(metric) for metric in (nsight.MEMORY, nsight.ARITHMETIC, nsight.OCCUPANCY))
    percentages = (f"{share:.0f} %" if share is not None else "" for share in shares)
    return (kernel.name, kernel.text(nsight.DURATION), *percentages, kernel.bound)


def sanitized(reports: Mapping[str, ToolReport]) -> Iterator[str]:
    """A line for each check of compute-sanitizer."""
    if reports:
        yield ""
        yield Line(f"{INDENT}by compute-sanitizer", "bold")
        rows = [(name, report.state, visible(report.text)) for name, report in reports.items()]
        yield from columns(rows, indent=INDENT * 2, prose=True)


def _hottest(root: Frame) -> list[tuple[str, ...]]:
    own: Counter[str] = Counter()
    for stack, spent_us in stacks_of(root):
        own[stack[-1]] += spent_us
    return [
        (f"{spent_us:,} µs", f"{100 * spent_us / root.value:.0f} %", visible(name)[:_LETTERS])
        for name, spent_us in own.most_common(_SHOWN)
        if spent_us
    ]
