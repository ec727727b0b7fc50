"""`kernelmark start`: writes a participant's first file."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from kernelmark.commands import complete
from kernelmark.commands.options import load_settings
from kernelmark.text.printing import print_text, say


@click.command()
@click.argument("problem", shell_complete=complete.problems)
@click.argument("file", required=False, type=click.Path(path_type=Path))
@click.option(
    "--lang",
    type=click.Choice(["triton", "cu", "cpp", "torch"]),
    help="What to write it in. [default: by the suffix of FILE, torch for .py]",
)
def start(problem: str, file: Path | None, lang: str | None) -> None:
    """Write a first kernel for PROBLEM into FILE, and print the command that checks it.

    In PyTorch it is the problem's definition: right, slow, and there to be replaced piece by piece. In Triton, CUDA and
    C++ it has the right signature, launch and bounds; it builds and runs, and is a wrong answer until it is filled in.
    FILE is SLUG.py, .cu or .cpp in this folder by default, and must not exist.
    """
    from kernelmark.authoring import start as starting

    started = starting.write(load_settings(problem), problem, lang, file)  # type: ignore[arg-type]  # click has checked lang
    state = "right, and slow" if started.right else "a wrong answer until you fill it in at TODO"
    say(f"wrote {started.path}: {state}; this command checks it:")
    print_text(shlex.join(["kernelmark", "check", problem, str(started.path)]))
