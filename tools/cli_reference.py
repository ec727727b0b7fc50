"""Prints docs/cli.md, generated from the commands' help: `make cli-reference` writes it.

The text above the marker is kept from the existing file.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from kernelmark.commands.cli import main, submit
from kernelmark.commands.look import explain
from kernelmark.text.words import markdown

FILE = Path(__file__).resolve().parent.parent / "docs" / "cli.md"
BEGIN = "<!-- From here on written by `make cli-reference`. -->"


def document(old: str) -> str:
    """The whole file; `old` is its present content."""
    return f"{old.partition(BEGIN)[0]}{BEGIN}\n" + "\n".join(lines()) + "\n"


def lines() -> Iterator[str]:
    """Every command, with its arguments and options."""
    yield from _command(submit, "submit")
    for path, command in _commands(main, "kernelmark"):
        if command is not submit and path != "kernelmark submit":
            yield from _command(command, path)


def _commands(group: click.Group, path: str) -> Iterator[tuple[str, click.Command]]:
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            if command.invoke_without_command:
                yield f"{path} {name}", command
            yield from _commands(command, f"{path} {name}")
        else:
            yield f"{path} {name}", command


def _command(command: click.Command, path: str) -> Iterator[str]:
    with click.Context(command, info_name=path) as context:
        usage = " ".join(command.collect_usage_pieces(context)).replace("[OPTIONS] ", "").replace("[OPTIONS]", "")
        options = [param.get_help_record(context) for param in command.params if isinstance(param, click.Option)]
    yield f"\n## {path}\n"
    yield f"    {path} {usage}".rstrip() + "\n"
    for paragraph in (command.help or "").replace("\f", "").split("\n\n"):
        yield " ".join(paragraph.split()) + "\n"
    if command.epilog:
        yield from (f"    {line.strip()}" for line in command.epilog.splitlines()[2:])
        yield ""
    if shown := [record for record in options if record is not None]:
        yield "| option | |"
        yield "|:---|:---|"
        yield from (f"| `{_cell(flag)}` | {_cell(text)} |" for flag, text in shown)
    if command is explain:
        for title, kind in (("Outcomes", "outcome"), ("Doubts", "doubt"), ("Terms", "term")):
            yield from (f"\n### {title}\n", *markdown(kind))


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    print(document(FILE.read_text(encoding="utf-8")), end="")
