"""Writes a profile as a folder with an `index.html` that a browser opens without a server. Trusted; texts are not."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from harness.errors import UsageError
from harness.profiling.flame_graph import flame_graph
from harness.profiling.stacks import collapse, stacks_of
from kernelmark.services.profiling import Profile
from kernelmark.services.profiling.kernel_profile import KernelProfile
from leaderboard.text.visible import visible

if TYPE_CHECKING:
    from harness.profiling.torch_profile import TorchProfile

_USED = re.compile(r" Function |  REG:")  # of cuobjdump's report
_TABLES = {
    "operators": "By operator",
    "shapes": "By input shape",
    "by stack": "By call stack",
    "autograd table": "torch.autograd.profiler, the older profiler",
}
_TIMES = {"cpu stacks": "CPU time", "device stacks": "device time"}


def write(profile: Profile, folder: Path, summary: Sequence[str]) -> list[Path]:
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


def _section(profile: KernelProfile, files: dict[str, bytes]) -> dict[str, Any]:
    """Add the files of one kernel; returns what the page says of it."""
    stem = re.sub(r"[^\w-]+", "-", profile.name)
    section: dict[str, Any] = {"name": visible(profile.name), "peak_bytes": None, "unreadable": []}
    section |= {"flames": [], "traces": [], "tables": [], "code": [], "resources": ""}
    section |= {"why_no_torch": visible(profile.why_no_torch), "why_no_code": visible(profile.why_no_code)}
    if profile.torch is not None:
        _add_torch(section, stem, profile.torch, files)
    if profile.code is not None:
        for name, text in profile.code.files.items():
            files[f"{stem}.{name}"] = text.encode()
            section["code"].append(f"{stem}.{name}")
            if name.endswith("resources.txt"):
                section["resources"] += "".join(line + "\n" for line in text.splitlines() if _USED.match(line))
        section["unreadable"] += map(visible, profile.code.unreadable)
    return section


def _add_torch(section: dict[str, Any], stem: str, profile: TorchProfile, files: dict[str, bytes]) -> None:
    for name, root in profile.stacks.items():
        if root.value:
            file = f"{stem}.{name.replace(' ', '-')}"
            picture = flame_graph(root, title=f"{section['name']}: {_TIMES[name]} of three calls", unit="µs")
            files[f"{file}.svg"] = picture.encode()
            files[f"{file}.txt"] = collapse(stacks_of(root)).encode()
            # Inside of the page, where the browser shows a box's full name; all names in it were escaped.
            section["flames"].append({"what": _TIMES[name], "file": file, "picture": Markup(picture)})
    for number, trace in enumerate(profile.traces):
        files[f"{stem}.trace-{number}.json"] = trace
        section["traces"].append(f"{stem}.trace-{number}.json")
    for name, table in profile.tables.items():
        if table.strip():
            file = f"{stem}.{name.replace(' ', '-')}.txt"
            files[file] = table.encode()
            section["tables"].append({"what": name, "title": _TABLES[name], "text": table})
    section["peak_bytes"] = profile.peak_bytes
    section["unreadable"] += map(visible, profile.unreadable)


@cache
def _template() -> Any:
    loader = FileSystemLoader(Path(__file__).parent)
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined).get_template("page.html")
