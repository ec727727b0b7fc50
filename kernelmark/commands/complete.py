"""What a shell completes: problems, baselines and runs of the project around the working directory.

Whatever is wrong with the project, nothing is completed, and nothing is printed.
"""

from __future__ import annotations

from collections.abc import Iterable

import click
from click.shell_completion import CompletionItem

from harness.errors import KernelmarkError
from kernelmark.commands.options import load_settings


def problems(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The slugs; folders, if what was typed leads to another one."""
    try:
        from kernelmark.project.problems import problem_directories

        found = _beginning(incomplete, (directory.name for directory in problem_directories(load_settings())))
    except (KernelmarkError, OSError):
        found = []
    return found or [CompletionItem(incomplete, type="dir")]


def shipped_problems(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The slugs of the problems that come with kernelmark."""
    try:
        from kernelmark.project.problems import shipped

        return _beginning(incomplete, (file.parent.name for file in shipped().glob("problems/*/problem.toml")))
    except (KernelmarkError, OSError):
        return []


def baselines(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The organizers' kernels of the problem that was typed before, or of all."""
    try:
        from harness.languages import LANGUAGES

        folder = load_settings().locate("reference")
        files = folder.glob(f"{context.params.get('problem') or '*'}/*")
        return _beginning(incomplete, {"none", *(file.stem for file in files if file.suffix[1:] in LANGUAGES)})
    except (KernelmarkError, OSError, ValueError):
        return []


def runs(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The ids of recorded runs."""
    try:
        from kernelmark.record.records import run_ids

        return _beginning(incomplete, run_ids(load_settings()))
    except (KernelmarkError, OSError):
        return []


def files(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Any file."""
    return [CompletionItem(incomplete, type="file")]


def _beginning(incomplete: str, names: Iterable[str]) -> list[CompletionItem]:
    return [CompletionItem(name) for name in sorted(names) if name.startswith(incomplete)]
