"""What the documents mention exists: links, commands and modules; and they hold no path of their author's machine."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from harness.errors import HarnessError, UsageError
from harness.verdict import DoubtCode, Outcome
from kernelmark.commands.cli import main

ROOT = Path(__file__).resolve().parent.parent.parent
# Folders that hold what was made here, and not what the project says. The board has the names of submitted files in it.
MADE = {"build", "archive", "boards", "node_modules", "project-0.1.0"}
MADE_BY_GRADING = tuple(f"leaderboard/{name}" for name in ("results", "archive", "BOARD.md", "boards", "devices"))


def _documents() -> Iterator[Path]:
    """Not by `Path.rglob`, which raises where a folder is removed meanwhile, as `make image` does in build/."""
    for folder, below, names in os.walk(ROOT):
        below[:] = [name for name in below if name not in MADE and not name.startswith(".")]
        yield from (
            Path(folder, name) for name in names if name.endswith(".md") and name[0] != "." and name != "BOARD.md"
        )


DOCUMENTS = sorted(_documents())
LINK = re.compile(r"\[[^\]\[]*\]\(([^()\s]+)\)")
FENCE = re.compile(r"^(?P<fence>```).*?^(?P=fence)$", re.DOTALL | re.MULTILINE)
COMMAND = re.compile(r"(?:^|[`$ ]|bin/)kernelmark ((?:[a-z]+(?:-[a-z]+)* ?)+)", re.MULTILINE)
MACHINE = re.compile(r"(?<![\w.])/(?:work|Users|root|tmp/[a-z]+|home/(?!runner\b)\w+)/")
MODULE = re.compile(
    r"`((?:harness|leaderboard|kernelmark|tests|tools|benchmarks|problems|reference|docs|examples)/[\w./-]+)`"
)


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


def links(text: str) -> list[str]:
    return [target for target in LINK.findall(FENCE.sub("", text)) if not re.match(r"[a-z]+:|#", target)]


def unknown_command(words: list[str]) -> str | None:
    """The first word of a `kernelmark ...` line that is no command, where one must stand."""
    group: click.Command = main
    for word in words:
        if not isinstance(group, click.Group):
            return None  # what follows a command are its arguments
        if word not in group.commands:
            return word
        group = group.commands[word]
    return None


def anchors(text: str) -> set[str]:
    titles = re.findall(r"^#+ (.*)$", FENCE.sub("", text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("document", DOCUMENTS, ids=named)
def test_every_link_file_and_command_exists(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    for target in links(text):
        file, _, anchor = target.partition("#")
        place = document.parent / file
        assert place.exists(), target
        assert not anchor or anchor in anchors(place.read_text(encoding="utf-8")), target
    for path in MODULE.findall(text):
        assert path.startswith(MADE_BY_GRADING) or (ROOT / path).exists(), path
    assert MACHINE.findall(text) == [], "no path of the machine it was written on"
    assert str(ROOT) not in text
    # Only what is set as code: in a sentence "kernelmark" is the project's name.
    code = [m[0] for m in FENCE.finditer(text)] + re.findall(r"`[^`\n]+`|^ {4}.*$", FENCE.sub("", text), re.MULTILINE)
    for found in (words for piece in code if "import " not in piece for words in COMMAND.findall(piece)):
        unknown = unknown_command(found.split())
        assert unknown is None, f"`kernelmark {found}`: no such command: {unknown}"


def test_the_reference_of_the_command_line_is_what_the_commands_say() -> None:
    made = subprocess.run(
        [sys.executable, "tools/cli_reference.py"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert (ROOT / "docs" / "cli.md").read_text(encoding="utf-8") == made.stdout, "`make cli-reference` writes it anew"


def test_every_package_says_what_it_owns() -> None:
    packages = [file for top in ("harness", "leaderboard", "kernelmark") for file in (ROOT / top).rglob("__init__.py")]
    assert len(packages) > 20
    assert [named(file.parent) for file in packages if not file.read_text(encoding="utf-8").startswith('"""')] == []


def test_every_attack_stands_in_the_threat_model() -> None:
    model = (ROOT / "docs" / "threat-model.md").read_text(encoding="utf-8")
    attacks = {
        file.parent.name
        for file in (ROOT / "kernelmark" / "diagnostics" / "selftest" / "attacks").glob("*/expect.toml")
    }
    assert attacks
    assert {name for name in attacks if f"`{name}`" not in model} == set()


def test_every_exit_status_is_documented() -> None:
    statuses = {outcome.exit_code for outcome in Outcome} | {UsageError.exit_code, HarnessError.exit_code}
    table = re.findall(r"^\| (\d) \|", (ROOT / "docs" / "cli.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert {int(status) for status in table} == statuses


def test_every_doubt_is_documented_and_given() -> None:
    described = re.findall(r"^- \*\*`(\w+)`\*\*", (ROOT / "docs" / "cli.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert {*DoubtCode, *Outcome} <= {*described}
    judge = "".join(module.read_text() for module in (ROOT / "harness" / "judge").rglob("*.py"))
    assert [code.name for code in DoubtCode if f"DoubtCode.{code.name}" not in judge] == []


@pytest.mark.parametrize(
    ("text", "links_lead", "unknown"),
    [
        ("see [a](docs/none.md)", False, "see"), ("see [a](README.md)", True, "see"),
        ("```\n[a](none.md)\n```", True, "```"), ("[a](https://example.org) [a](#here)", True, "[a](https://example.org)"),
        ("check softmax", True, None), ("problems lint", True, None), ("problems leap", True, "leap"),
    ],
)  # fmt: skip
def test_a_broken_link_and_an_unknown_command_are_found(text: str, links_lead: bool, unknown: str | None) -> None:
    assert all((ROOT / target).exists() for target in links(text)) is links_lead
    assert unknown_command(text.split()) == unknown


def test_a_path_of_a_machine_is_found() -> None:
    assert all(MACHINE.search(f"see `{path}`") for path in ("/home/ada/kernel.py", "/tmp/x/bin", "/root/x"))
