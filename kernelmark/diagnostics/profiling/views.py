"""The views of a kernel's profile: makes them, and divides them into sections. Trusted.

Each view is made in its own sandbox. Its sections are shown on the page of `kernelmark profile`, and `submit --profile`
stores them with the run. All texts in them come from the submission, and must be escaped where they are shown. torch is
imported when a view is made.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, get_args

from harness.errors import UsageError
from harness.judge import Progress
from harness.problem import Problem
from harness.profiling.flame_graph import flame_graph
from harness.profiling.sanitizer import ToolReport, faults
from harness.profiling.stacks import Frame, collapse, stacks_of
from harness.sandbox import Provider
from harness.submission import Submission
from harness.verdict import DeviceKind, Stage
from harness.wire import commands
from kernelmark.diagnostics.profiling.charts import line_chart
from kernelmark.grading.setup import OnProgress
from kernelmark.text.profiles import USE, use
from leaderboard.publishing.site.charts import memory
from leaderboard.record.profile import memory_file

if TYPE_CHECKING:
    from harness.profiling.code import CompiledCode
    from harness.profiling.nsight import KernelMetrics, NsightProfile
    from harness.profiling.torch_profile import TorchProfile


ViewName = Literal["torch", "stacks", "memory", "ncu", "code", "sanitize"]
# Of Nsight Compute's sections the page has the main tables and why warps wait; everything is in the files.
_STALLS, _BY_LINE, _VALUE = "Warp State", "Source Counters", 40
_KEPT_TRACE_BYTES = 200_000  # of one that is kept with a run
_TABLES = {
    "operators": "By operator",
    "shapes": "By input shape",
    "by stack": "By call stack",
    "modules": "By module",
    "autograd table": "torch.autograd.profiler, the older profiler",
}
_TIMES = {"cpu stacks": "CPU time", "device stacks": "device time"}


@dataclass
class ViewSection:
    """The content below one heading."""

    title: str
    note: str = ""
    """Our own words, in which addresses become links."""
    rows: Sequence[Sequence[str]] = ()
    """A small table; the first row is the head."""
    text: str = ""
    """A long table, which is folded."""
    lines: Sequence[str] = ()
    metrics: Sequence[tuple[str, Mapping[str, Sequence[tuple[str, str]]]]] = ()
    """Tables of names and values by their title, for each kernel by its name; on the page alone."""
    stacks: dict[str, Frame] = field(default_factory=dict)
    """By the measured quantity and its unit; stored with a run."""
    pictures: Sequence[str] = ()
    """SVG, with all texts escaped."""
    files: dict[str, bytes] = field(default_factory=dict)
    """By the last part of their names, which begin with the kernel's name."""
    kept: dict[str, str] = field(default_factory=dict)
    """Texts that are stored with a run; the other files are large, and for programs."""


def _nsight_sections(profile: NsightProfile) -> Iterator[ViewSection]:
    yield ViewSection(
        "Nsight Compute",
        "One call, at most its first 40 launches; each kernel ran several times, once for every group of counters. "
        "Memory and arithmetic are in % of the GPU's peak: a kernel is bound by the higher one, or by latency if both "
        "are below 60 %.",
        rows=(USE, *map(use, profile.kernels)),
        text=profile.details,
        lines=[profile.version],
        metrics=[(kernel.name, _metrics(kernel)) for kernel in profile.kernels],
        files={"ncu-rep": profile.report, "ncu.txt": profile.details.encode(), "ncu.csv": profile.table.encode()},
        kept={"ncu.csv": profile.table},
    )


def _metrics(kernel: KernelMetrics) -> dict[str, list[tuple[str, str]]]:
    tables: dict[str, list[tuple[str, str]]] = {}
    for metric in kernel.metrics:
        shown = not metric.breakdown or metric.breakdown.startswith(_STALLS)
        if shown and metric.section != _BY_LINE and len(metric.value) <= _VALUE:
            title = f"{metric.section}: {metric.breakdown}" if metric.breakdown else metric.section
            tables.setdefault(title, []).append((metric.name, f"{metric.value} {metric.unit}"))
    return tables


def _sanitizer_sections(reports: Mapping[str, ToolReport]) -> Iterator[ViewSection]:
    if reports:
        texts = {f"{name}.txt": report.printed for name, report in reports.items()}
        rows = [(name, report.state, report.text) for name, report in reports.items()]
        yield ViewSection(
            "compute-sanitizer",
            rows=[("check", "result", "details"), *rows],
            lines=[f"{name}: {fault}" for name, report in reports.items() for fault in faults(report.printed)],
            files={name: text.encode() for name, text in texts.items()},
            kept=texts,
        )


def _torch_sections(profile: TorchProfile) -> Iterator[ViewSection]:
    if held := [timeline for timeline in profile.memory if timeline.peak_bytes]:
        title = "Memory that PyTorch held"
        peaks = [(timeline.device, f"{timeline.peak_bytes:,}") for timeline in held]
        pictures = {}
        for timeline in held:
            x, y, line = memory.steps(timeline.points)
            what, lines = f"{title} on the {timeline.device}", {timeline.device: line}
            pictures[timeline.device] = line_chart(what, x, y, lines, {})
        yield ViewSection(
            title,
            "During the calls, beyond what it held at the start, without inputs and outputs.",
            rows=[("device", "most at once (B)"), *peaks],
            pictures=list(pictures.values()),
            files={f"memory-{device}.svg": picture.encode() for device, picture in pictures.items()},
            kept={memory_file(timeline.device): memory.written(timeline.points) for timeline in held},
        )
    if profile.memory_snapshot:
        note = "Every block and allocation of one call, for torch's memory viewer: https://pytorch.org/memory_viz"
        yield ViewSection("Memory snapshot", note, files={"memory-snapshot.pickle": profile.memory_snapshot})
    for name, root in profile.stacks.items():
        if root.value:
            what, file = f"{_TIMES[name]} of {profile.calls} calls", name.replace(" ", "-")
            picture = flame_graph(root, title=what, unit="µs")
            yield ViewSection(
                f"Flame graph, {_TIMES[name]}",
                "Hover over a box to see its full name.",
                stacks={f"{what}, µs": root},
                pictures=[picture],
                files={f"{file}.svg": picture.encode(), f"{file}.txt": collapse(stacks_of(root)).encode()},
            )
    if profile.traces and not profile.stacks:
        yield ViewSection("Flame graph", "There is none: no call stack was recorded, as in Triton's interpreter.")
    if profile.traces:
        traces = {f"trace-{number}.json": trace for number, trace in enumerate(profile.traces)}
        short = {name: trace for name, trace in traces.items() if len(trace) <= _KEPT_TRACE_BYTES}
        kept = {f"{name}, for Perfetto": trace.decode("ascii") for name, trace in short.items()}
        yield ViewSection(
            "Traces", "For Perfetto (https://ui.perfetto.dev) or chrome://tracing.", files=traces, kept=kept
        )
    for name, text in profile.tables.items():
        if text.strip():
            yield ViewSection(_TABLES[name], text=text, files={f"{name.replace(' ', '-')}.txt": text.encode()})


def _code_sections(code: CompiledCode) -> Iterator[ViewSection]:
    if rows := code.resources:
        yield ViewSection("Resources", "Registers, stack and shared memory of each kernel, by cuobjdump.", rows=rows)
    if code.files:
        yield ViewSection("Code", files={name: text.encode() for name, text in code.files.items()}, kept=code.files)


def parts(device: DeviceKind) -> tuple[ViewName, ...]:
    """The parts of a profile on a device."""
    everywhere: tuple[ViewName, ...] = ("torch", "stacks", "memory", "code")
    return ("ncu", "sanitize", *everywhere) if device == "cuda" else everywhere


@dataclass
class KernelProfile:
    """The results of the views of a kernel."""

    name: str
    torch: TorchProfile | None = None
    nsight: NsightProfile | None = None
    code: CompiledCode | None = None
    sanitized: dict[str, ToolReport] = field(default_factory=dict)
    """By compute-sanitizer's check, such as memcheck."""
    missing: dict[str, str] = field(default_factory=dict)
    """Why a requested view is missing, in one line: its process ended early, or a tool is not installed."""

    @property
    def unreadable(self) -> list[str]:
        """The results that could not be read, one line each."""
        return [line for part in (self.torch, self.code) if part is not None for line in part.unreadable]

    def sections(self) -> Iterator[ViewSection]:
        """All sections, in the order in which they are shown."""
        if self.nsight is not None:
            yield from _nsight_sections(self.nsight)
        yield from _sanitizer_sections(self.sanitized)
        if self.torch is not None:
            yield from _torch_sections(self.torch)
        if self.code is not None:
            yield from _code_sections(self.code)


def kernel_profile(
    submission: Submission,
    problem: Problem,
    device: DeviceKind,
    provider: Provider,
    parts: Collection[ViewName],
    on_progress: OnProgress,
    options: commands.Profile | None = None,
) -> KernelProfile:
    """Make the views that these parts ask for, of the problem's one benchmark, as far as the device runs the kernel.

    Args:
        options: of torch.profiler, except its parts; None: the defaults.

    Raises:
        HarnessError: we failed.
    """
    from harness.judge.correctness.graded_case import GradedCase
    from harness.judge.correctness.oracle import load_reference
    from harness.judge.session import SubmissionFault
    from harness.judge.timing.device_lock import lock_alone
    from harness.languages import LANGUAGES
    from harness.profiling import nsight, sanitizer
    from harness.profiling.code import compiled_code
    from harness.profiling.torch_profile import EVERYTHING, torch_profile

    [benchmark] = problem.benchmarks
    reference = load_reference(problem, provider, device)
    case = GradedCase(problem, reference, device, problem.resolve(benchmark))
    baseline = submission.author == "baseline"
    made = KernelProfile(f"baseline {submission.name}" if baseline else submission.name)
    runs = device in LANGUAGES[submission.language].devices
    of_torch = [part for part in get_args(commands.ProfilePart) if part in parts]

    def report(what: str) -> None:
        on_progress(Progress(Stage.TEST, 0, 1, f"{made.name}: {what}"))

    @contextmanager
    def view(name: str) -> Iterator[None]:
        report(name)
        try:
            yield
        except SubmissionFault as fault:
            made.missing[name] = fault.message
        except (nsight.NothingMeasured, UsageError) as error:
            made.missing[name] = str(error)

    with closing(reference), lock_alone(device, lambda: report("waiting: another grading is using this device")):
        if runs and "ncu" in parts:
            with view("Nsight Compute"):
                made.nsight = nsight.profile(submission, case, provider)
        if runs and "sanitize" in parts and not baseline:
            with view("compute-sanitizer"):
                reports = {}
                for check, watcher in sanitizer.checks().items():
                    report(check)
                    reports[check] = sanitizer.audit(watcher, problem, submission, provider=provider, device=device)
                made.sanitized = reports
        if runs and of_torch:
            with view("torch.profiler"):
                made.torch = torch_profile(
                    submission, case, provider, replace(options or EVERYTHING, parts=tuple(of_torch))
                )
        if "code" in parts:
            with view("compiled code"):
                made.code = compiled_code(submission, case, provider)
    return made
