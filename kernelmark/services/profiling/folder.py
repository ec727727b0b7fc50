"""Writes a profile as a folder whose `index.html` opens from a file. Trusted code over what a submission said."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from harness.errors import UsageError
from harness.profiling.flame_graph import flame_graph
from harness.profiling.stacks import collapse, stacks_of
from kernelmark.services.profiling import Profile
from kernelmark.services.profiling.torch_profiles import Profiled
from leaderboard.text.visible import visible

_TIMES = {"cpu stacks": "CPU time", "device stacks": "device time"}


def write(profile: Profile, folder: Path, summary: Sequence[str]) -> list[Path]:
    """Write everything; `summary` is what the terminal shows. Returns the paths, the page first.

    Raises:
        UsageError: the folder cannot be written.
    """
    files: dict[str, bytes] = {}
    sections = [_section(each, files) for each in profile.profiles]
    page = _template().render(
        name=visible(profile.verdict.submission.name),
        problem=profile.verdict.problem.slug,
        case=profile.case,
        summary="\n".join(summary),
        sections=sections,
    )
    written = {"index.html": page.encode("utf-8", "backslashreplace"), **files}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in written.items():
            (folder / name).write_bytes(content)
    except OSError as error:
        raise UsageError(
            str(folder), f"cannot be written ({error.strerror})", "name another folder with --out"
        ) from None
    return [folder / name for name in written]


def tensorboard(profile: Profile, folder: Path) -> None:
    """Write the submission's traces under the names by which TensorBoard's profiler plugin finds them.

    Raises:
        UsageError: the folder cannot be written.
    """
    of_torch = profile.profiles[0].torch if profile.profiles else None
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for number, trace in enumerate(of_torch.traces if of_torch else ()):
            (folder / f"kernelmark.{number}.pt.trace.json").write_bytes(trace)
    except OSError as error:
        raise UsageError(str(folder), f"cannot be written ({error.strerror})", "name another folder") from None


def _section(profiled: Profiled, files: dict[str, bytes]) -> dict[str, Any]:
    """Add the files of one kernel; returns what the page says of it."""
    stem = re.sub(r"[^\w-]+", "-", profiled.name)
    section: dict[str, Any] = {
        "name": visible(profiled.name),
        "why_not": visible(profiled.why_not),
        "flames": [],
        "traces": [],
        "tables": [],
        "peak_bytes": None,
        "unreadable": [],
    }
    if profiled.torch is None:
        return section
    for name, root in profiled.torch.stacks.items():
        if root.value:
            file = f"{stem}.{name.replace(' ', '-')}"
            title = f"{profiled.name}: {_TIMES[name]} of three calls"
            files[f"{file}.svg"] = flame_graph(root, title=title, unit="µs").encode()
            files[f"{file}.txt"] = collapse(stacks_of(root)).encode("utf-8", "backslashreplace")
            section["flames"].append({"what": _TIMES[name], "file": file})
    for number, trace in enumerate(profiled.torch.traces):
        files[f"{stem}.trace-{number}.json"] = trace
        section["traces"].append(f"{stem}.trace-{number}.json")
    for name, table in profiled.torch.tables.items():
        if table.strip():
            file = f"{stem}.{name.replace(' ', '-')}.txt"
            files[file] = table.encode("utf-8", "backslashreplace")
            section["tables"].append({"what": name, "file": file, "text": table})
    section["peak_bytes"] = profiled.torch.peak_bytes
    section["unreadable"] = [visible(each) for each in profiled.torch.unreadable]
    return section


@cache
def _template() -> Any:
    loader = FileSystemLoader(Path(__file__).parent)
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined).get_template("page.html")
