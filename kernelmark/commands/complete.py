"""Shell completion: problems, baselines and runs of the project of the working directory.

If something is wrong with the project, nothing is completed and nothing is printed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import click
from click.shell_completion import CompletionItem

from harness.errors import KernelmarkError
from kernelmark.commands.options import load_settings

Completion = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def _one_of(find: Callable[[click.Context], Iterable[str]]) -> Completion:
    """A completion among the names that `find` returns."""

    def complete(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
        try:
            return [CompletionItem(name) for name in sorted(find(context)) if name.startswith(incomplete)]
        except (KernelmarkError, OSError, ValueError):
            return []

    return complete


@_one_of
def _slugs(_context: click.Context) -> Iterable[str]:
    from kernelmark.project.problems import problem_directories

    return (directory.name for directory in problem_directories(load_settings()))


def problems(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The slugs of problems; folders, if no slug begins with the typed text."""
    return _slugs(context, parameter, incomplete) or [CompletionItem(incomplete, type="dir")]


@_one_of
def shipped_problems(_context: click.Context) -> Iterable[str]:
    """The slugs of the problems that come with kernelmark."""
    from kernelmark.project.problems import shipped

    return (file.parent.name for file in shipped().glob("problems/*/problem.toml"))


@_one_of
def baselines(context: click.Context) -> Iterable[str]:
    """The organizers' kernels of the problem on the command line, or of all problems."""
    from harness.languages import LANGUAGES

    files = load_settings().locate("reference").glob(f"{context.params.get('problem') or '*'}/*")
    return {"none", *(file.stem for file in files if file.suffix[1:] in LANGUAGES)}


@_one_of
def runs(_context: click.Context) -> Iterable[str]:
    """The ids of recorded runs."""
    from kernelmark.record.records import run_ids

    return run_ids(load_settings())


@_one_of
def words(_context: click.Context) -> Iterable[str]:
    """The outcomes, doubts and terms that `kernelmark explain` knows."""
    from kernelmark.text import words

    return (word["word"] for word in words.words())
