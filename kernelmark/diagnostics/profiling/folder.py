"""Writes a profile as a folder with an `index.html` that a browser opens without a server. Trusted; texts are not."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template

from harness.errors import UsageError
from kernelmark.diagnostics.profiling import CaseProfile
from leaderboard.text.visible import visible


def write(profile: CaseProfile, folder: Path, summary: Sequence[str]) -> list[Path]:
    """Write everything; `summary` is what the terminal shows of what was measured. Returns the paths, the page first.

    Raises:
        UsageError: the folder cannot be written.
    """
    kernels = [(kernel, _stem(kernel.name), list(kernel.sections())) for kernel in profile.profiles]
    page = _template().render(profile=profile, kernels=kernels, summary="\n".join(summary))
    files = {
        f"{stem}.{name}": content
        for _, stem, sections in kernels
        for section in sections
        for name, content in section.files.items()
    }
    return write_files(folder, {"index.html": page.encode("utf-8", "backslashreplace"), **files})


def _stem(name: str) -> str:
    """A kernel's name as the beginning of a file name."""
    return re.sub(r"[^\w-]+", "-", name)


def tensorboard(profile: CaseProfile, folder: Path) -> None:
    """Write all traces under the names by which TensorBoard's profiler plugin finds them: a worker for each kernel.

    Raises:
        UsageError: the folder cannot be written.
    """
    files = {}
    for place, kernel in enumerate(profile.profiles):
        worker = _stem(kernel.name) if place else "kernelmark"
        for number, trace in enumerate(kernel.torch.traces if kernel.torch else ()):
            files[f"{worker}.{number}.pt.trace.json"] = trace
    write_files(folder, files)


def write_files(folder: Path, files: Mapping[str, bytes]) -> list[Path]:
    """Write these files into the folder, making it if needed; returns their paths.

    Raises:
        UsageError: the folder cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            (folder / name).write_bytes(content)
    except OSError as error:
        raise UsageError(str(folder), f"cannot be written ({error.strerror})", "name another folder") from None
    return [folder / name for name in files]


@cache
def _template() -> Template:
    loader = FileSystemLoader(Path(__file__).parent)
    environment = Environment(loader=loader, autoescape=True, undefined=StrictUndefined)
    environment.filters["visible"] = visible
    return environment.get_template("page.html")
