"""`kernelmark init` makes a project, and `kernelmark start` a participant's first file."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

import click

from harness.errors import UsageError
from kernelmark.commands import complete
from kernelmark.commands.options import from_option, load_settings
from kernelmark.text.terminal import counted, print_text, say


@click.command()
@click.argument("problem", shell_complete=complete.problems)
@click.argument("file", required=False, type=click.Path(path_type=Path))
@click.option(
    "--lang",
    type=click.Choice(["triton", "cu", "cpp", "torch"]),
    help="What to write it in. [default: by the suffix of FILE, torch for .py]",
)
@from_option
def start(problem: str, file: Path | None, lang: str | None, server: str | None) -> None:
    """Write a first kernel for PROBLEM into FILE, and print the command that checks it.

    In PyTorch it is the problem's definition: right and slow, for you to replace step by step. In Triton, CUDA and C++
    it is the problem's file for this in its folder `start`, or only the signature; it builds, and is wrong until you
    fill it in. FILE is SLUG.py, .cu or .cpp in this folder by default, and must not exist.
    """
    from kernelmark.authoring import start as starting

    to = [] if server is None else ["--to", server]
    if server is None:
        started = starting.write(load_settings(problem), problem, lang, file)  # type: ignore[arg-type]  # click has checked lang
    else:
        from kernelmark.client import reading, servers

        kind, path = starting.choose(problem, lang, file)  # type: ignore[arg-type]  # as above
        with servers.reading(server) as connection:
            started = starting.store(path, reading.start(connection, problem, kind), kind)
    state = "right, and slow" if started.right else "wrong until you fill it in at TODO"
    say(f"wrote {started.path}: {state}; this command checks it:")
    print_text(shlex.join(["kernelmark", "check", problem, str(started.path), *to]))


@click.command()
@click.argument("folder", metavar="[DIR]", default=".", type=click.Path(path_type=Path))
@click.option(
    "--problem",
    "problems",
    multiple=True,
    metavar="SLUG",
    shell_complete=complete.shipped_problems,
    help="One of kernelmark's own problems; repeatable. [default: vector_add and softmax]",
)
@click.option("--course", is_flag=True, help="A course instead: one assignment with a deadline, and submissions.")
def init(folder: Path, problems: Sequence[str], course: bool) -> None:
    """Make a project in DIR, by default here: settings, problems, the organizers' kernels, and a workflow for GitHub.

    DIR may exist. If it is a project, --problem adds problems to it, each with its kernels. Nothing is overwritten: if
    one of the files is there already, none is written.
    """
    from kernelmark.authoring import init as making
    from kernelmark.project.settings import FILE_NAME

    if course and problems:
        raise UsageError("--problem", "a course has its own", "leave it out, or --course")
    slugs = tuple(dict.fromkeys(problems)) or making.DEFAULT
    more = bool(problems) and (folder / FILE_NAME).is_file()
    files = making.course() if course else making.added(slugs) if more else making.competition(slugs)
    making.write(folder, files)
    what = f"wrote {counted(len(files), 'file')} to {'this folder' if folder == Path() else folder}"
    say(f"{what}. Begin with:" if more else f"{what}; README.md says more. Begin with:")
    first = "row_sum" if course else slugs[0]
    there = [] if folder == Path() else [shlex.join(["cd", str(folder)])]
    commands = (f"{command} {first} my_kernel.py" for command in ("kernelmark start", "kernelmark check", "submit"))
    print_text("\n".join([*there, *commands]))
