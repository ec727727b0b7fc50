"""The views of a profile: for each what it needs, how it is made, and what there is to see of it. Trusted.

A view is made in a sandbox of its own. Its sections are shown on the page of `kernelmark profile`, and kept with the
run by `submit --profile`. All texts in them are the submission's own word: whatever shows them escapes them. torch is
imported when a view is made.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from harness.audit.tools import ToolReport, faults
from harness.errors import UsageError
from harness.judge import Progress
from harness.problem import Problem
from harness.profiling.flame_graph import flame_graph
from harness.profiling.stacks import Frame, collapse, stacks_of
from harness.sandbox import Provider
from harness.submission import Submission
from harness.verdict import DeviceKind, Stage
from kernelmark.diagnostics.profiling.charts import line_chart
from kernelmark.grading.setup import OnProgress
from kernelmark.text.profiles import USE, use
from leaderboard.publishing.site.charts import memory
from leaderboard.record.profile import memory_file

if TYPE_CHECKING:
    from harness.audit.tools import ToolReport
    from harness.judge.correctness.graded_case import GradedCase
    from harness.profiling.code import CompiledCode
    from harness.profiling.nsight import KernelMetrics, NsightProfile
    from harness.profiling.torch_profile import TorchProfile


Part = Literal["torch", "stacks", "memory", "ncu", "code", "sanitize"]
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


@dataclass(frozen=True)
class ViewRequest:
    """One kernel on one case, the sandbox for it, and those of the view's parts that are wanted."""

    submission: Submission
    case: GradedCase
    provider: Provider
    parts: Sequence[Part]
    report: Callable[[str], None]


@dataclass
class ViewSection:
    """What is shown below one heading."""

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
    """By what they measure and its unit; kept with a run."""
    pictures: Sequence[str] = ()
    """SVG, with all texts escaped."""
    files: dict[str, bytes] = field(default_factory=dict)
    """By the ends of their names, which begin with that of the kernel."""
    kept: dict[str, str] = field(default_factory=dict)
    """Texts that are kept with a run; the others are large, and for programs."""


@dataclass(frozen=True)
class View:
    """One entry of `VIEWS`."""

    name: str
    field: str
    """Where its result goes in a kernel's profile."""
    parts: tuple[Part, ...]
    """The options of the command, each of which asks for it."""
    make: Callable[[ViewRequest], Any]
    """Raises `SubmissionFault`, `NothingMeasured` or `UsageError` if the submission or a tool prevents it."""
    sections: Callable[[Any], Iterator[ViewSection]]
    gpu: bool = False
    """Whether it needs a GPU."""
    calls: bool = True
    """Whether it calls the kernel, which must then run on the device."""
    baselines: bool = True
    """Whether it is made of baselines, too."""


def _nsight(request: ViewRequest) -> NsightProfile:
    from harness.profiling import nsight

    return nsight.profile(request.submission, request.case, request.provider)


def _sanitize(request: ViewRequest) -> dict[str, ToolReport]:
    from harness.audit.tools import audit, sanitizers

    reports, case = {}, request.case
    for tool in sanitizers():
        request.report(tool.name)
        reports[tool.name] = audit(
            case.problem, request.submission, tool, provider=request.provider, device=case.device
        )
    return reports


def _torch(request: ViewRequest) -> TorchProfile:
    from harness.profiling.torch_profile import torch_profile

    return torch_profile(request.submission, request.case, request.provider, request.parts)  # type: ignore[arg-type]


def _code(request: ViewRequest) -> CompiledCode:
    from harness.profiling.code import compiled_code

    return compiled_code(request.submission, request.case, request.provider)


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
            what, file = f"{_TIMES[name]} of three calls", name.replace(" ", "-")
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


VIEWS = (
    View("Nsight Compute", "nsight", ("ncu",), _nsight, _nsight_sections, gpu=True),
    View("compute-sanitizer", "sanitized", ("sanitize",), _sanitize, _sanitizer_sections, gpu=True, baselines=False),
    View("torch.profiler", "torch", ("torch", "stacks", "memory"), _torch, _torch_sections),
    View("compiled code", "code", ("code",), _code, _code_sections, calls=False),
)
"""In the order in which they are made and shown."""


def parts(device: DeviceKind) -> tuple[Part, ...]:
    """What there is to profile on a device."""
    return tuple(part for view in VIEWS if device == "cuda" or not view.gpu for part in view.parts)


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
    """Why a view that was wanted is not there, in a line: its process did not survive it, or a tool is missing."""

    @property
    def unreadable(self) -> list[str]:
        """What came and could not be read, one line each."""
        return [line for part in (self.torch, self.code) if part is not None for line in part.unreadable]

    def sections(self) -> Iterator[ViewSection]:
        """What there is to see, in the order in which it is shown."""
        for view in VIEWS:
            if (result := getattr(self, view.field)) is not None:
                yield from view.sections(result)


def kernel_profile(
    submission: Submission,
    problem: Problem,
    device: DeviceKind,
    provider: Provider,
    parts: Collection[Part],
    on_progress: OnProgress,
) -> KernelProfile:
    """Make the views that these parts ask for, of the problem's one benchmark, as far as the device runs the kernel.

    Raises:
        HarnessError: we failed.
    """
    from harness.judge.correctness.graded_case import GradedCase
    from harness.judge.correctness.oracle import load_reference
    from harness.judge.session import SubmissionFault
    from harness.judge.timing.device_lock import lock_alone
    from harness.languages import LANGUAGES
    from harness.profiling.nsight import NothingMeasured

    [benchmark] = problem.benchmarks
    reference = load_reference(problem, provider, device)
    case = GradedCase(problem, reference, device, problem.resolve(benchmark))
    baseline = submission.author == "baseline"
    made = KernelProfile(f"baseline {submission.name}" if baseline else submission.name)
    runs = device in LANGUAGES[submission.language].devices

    def report(what: str) -> None:
        on_progress(Progress(Stage.TEST, 0, 1, f"{made.name}: {what}"))

    with closing(reference), lock_alone(device, lambda: report("waiting: another grading is using this device")):
        for view in VIEWS:
            wanted = [part for part in view.parts if part in parts]
            if not wanted or (view.calls and not runs) or (baseline and not view.baselines):
                continue
            report(view.name)
            try:
                setattr(made, view.field, view.make(ViewRequest(submission, case, provider, wanted, report)))
            except SubmissionFault as fault:
                made.missing[view.name] = fault.message
            except (NothingMeasured, UsageError) as error:
                made.missing[view.name] = str(error)
    return made
