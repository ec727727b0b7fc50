"""Writes a profile as a folder with an `index.html` that a browser opens without a server. Trusted; texts are not."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from harness.audit.tools import faults
from harness.profiling.flame_graph import flame_graph
from harness.profiling.stacks import collapse, stacks_of
from kernelmark.diagnostics.profiling import SubmissionProfile
from kernelmark.diagnostics.profiling.charts import line_chart
from kernelmark.diagnostics.profiling.kernel_profile import KernelProfile
from kernelmark.diagnostics.profiling.written import write_files
from kernelmark.text.terminal import columns
from leaderboard.publishing.site.charts.memory import steps
from leaderboard.text.visible import visible

if TYPE_CHECKING:
    from harness.audit.tools import ToolReport
    from harness.profiling.nsight import NsightProfile
    from harness.profiling.torch_profile import TorchProfile

# Of Nsight Compute's sections the page has the main tables and why warps wait; everything is in the files.
_STALLS, _BY_LINE, _VALUE = "Warp State", "Source Counters", 40
TABLES = {
    "operators": "By operator",
    "shapes": "By input shape",
    "by stack": "By call stack",
    "modules": "By module",
    "autograd table": "torch.autograd.profiler, the older profiler",
}
TIMES = {"cpu stacks": "CPU time", "device stacks": "device time"}


def write(profile: SubmissionProfile, folder: Path, summary: Sequence[str]) -> list[Path]:
    """Write everything; `summary` is what the terminal shows of what was measured. Returns the paths, the page first.

    Raises:
        UsageError: the folder cannot be written.
    """
    files: dict[str, bytes] = {}
    sections = [_section(each, files) for each in profile.profiles]
    page = _template().render(
        name=sections[0]["name"],
        problem=profile.problem,
        case=profile.case,
        summary="\n".join(summary),
        sections=sections,
    )
    return write_files(folder, {"index.html": page.encode("utf-8", "backslashreplace"), **files})


def tensorboard(profile: SubmissionProfile, folder: Path) -> None:
    """Write the submission's traces under the names by which TensorBoard's profiler plugin finds them.

    Raises:
        UsageError: the folder cannot be written.
    """
    of_torch = profile.profiles[0].torch if profile.profiles else None
    traces = of_torch.traces if of_torch else ()
    write_files(folder, {f"kernelmark.{number}.pt.trace.json": trace for number, trace in enumerate(traces)})


def _section(profile: KernelProfile, files: dict[str, bytes]) -> dict[str, Any]:
    """Add the files of one kernel; returns what the page says of it."""
    stem = re.sub(r"[^\w-]+", "-", profile.name)
    section: dict[str, Any] = {"name": visible(profile.name), "unreadable": [], "no_stacks": False, "snapshot": ""}
    section |= {"flames": [], "memory": [], "traces": [], "tables": [], "code": [], "resources": "", "nsight": None}
    section["missing"] = {name: visible(why) for name, why in profile.missing.items()}
    section["sanitized"] = [_check(stem, name, each, files) for name, each in profile.sanitized.items()]
    if profile.nsight is not None:
        section["nsight"] = _nsight(stem, profile.nsight, files)
    if profile.torch is not None:
        _add_torch(section, stem, profile.torch, files)
    if profile.code is not None:
        for name, text in profile.code.files.items():
            files[f"{stem}.{name}"] = text.encode()
            section["code"].append(f"{stem}.{name}")
        if rows := profile.code.resources:
            section["resources"] = "\n".join(columns(rows, right=frozenset(range(1, len(rows[0]))), indent=""))
        section["unreadable"] += map(visible, profile.code.unreadable)
    return section


def _add_torch(section: dict[str, Any], stem: str, profile: TorchProfile, files: dict[str, bytes]) -> None:
    for name, root in profile.stacks.items():
        if root.value:
            file = f"{stem}.{name.replace(' ', '-')}"
            picture = flame_graph(root, title=f"{section['name']}: {TIMES[name]} of three calls", unit="µs")
            files[f"{file}.svg"] = picture.encode()
            files[f"{file}.txt"] = collapse(stacks_of(root)).encode()
            # Inside of the page, where the browser shows a box's full name; all names in it were escaped.
            section["flames"].append({"what": TIMES[name], "file": file, "picture": Markup(picture)})
    for number, trace in enumerate(profile.traces):
        files[f"{stem}.trace-{number}.json"] = trace
        section["traces"].append(f"{stem}.trace-{number}.json")
    for name, table in profile.tables.items():
        if table.strip():
            file = f"{stem}.{name.replace(' ', '-')}.txt"
            files[file] = table.encode()
            section["tables"].append({"what": name, "title": TABLES[name], "text": table})
    for timeline in profile.memory:
        if timeline.peak_bytes:
            file = f"{stem}.memory-{timeline.device}.svg"
            x, y, line = steps(timeline.points)
            picture = line_chart(f"{section['name']}: memory that PyTorch held", x, y, {timeline.device: line}, {})
            files[file] = picture.encode()
            told = {"device": timeline.device, "peak_bytes": timeline.peak_bytes, "file": file}
            section["memory"].append({**told, "picture": Markup(picture)})
    if profile.memory_snapshot:
        section["snapshot"] = f"{stem}.memory-snapshot.pickle"
        files[section["snapshot"]] = profile.memory_snapshot
    section["no_stacks"] = bool(profile.traces) and not profile.stacks
    section["unreadable"] += map(visible, profile.unreadable)


def _nsight(stem: str, profile: NsightProfile, files: dict[str, bytes]) -> dict[str, Any]:
    written = {f"{stem}.ncu-rep": profile.report}
    written |= {f"{stem}.ncu.txt": profile.details.encode(), f"{stem}.ncu.csv": profile.table.encode()}
    files |= written
    kernels = []
    for kernel in profile.kernels:
        sections: dict[str, list[tuple[str, str]]] = {}
        for metric in kernel.metrics:
            shown = not metric.breakdown or metric.breakdown.startswith(_STALLS)
            if shown and metric.section != _BY_LINE and len(metric.value) <= _VALUE:
                title = f"{metric.section}: {metric.breakdown}" if metric.breakdown else metric.section
                line = visible(metric.name), visible(f"{metric.value} {metric.unit}")
                sections.setdefault(visible(title), []).append(line)
        kernels.append({"name": visible(kernel.name), "bound": kernel.bound, "sections": sections})
    return {"version": visible(profile.version), "kernels": kernels, "files": list(written)}


def _check(stem: str, name: str, report: ToolReport, files: dict[str, bytes]) -> dict[str, Any]:
    file = f"{stem}.{name}.txt"
    files[file] = report.printed.encode()
    found = [visible(each) for each in faults(report.printed)]
    return {"name": name, "state": report.state, "text": visible(report.text), "faults": found, "file": file}


@cache
def _template() -> Any:
    loader = FileSystemLoader(Path(__file__).parent)
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined).get_template("page.html")
