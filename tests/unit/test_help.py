"""What a user finds with `--help`, and what a shell completes."""

from __future__ import annotations

import io
import re
import shlex
from pathlib import Path

import click
import pytest
from click.shell_completion import ShellComplete

from kernelmark.commands.cli import main, submit
from kernelmark.commands.help import SECTIONS, commands
from tests.unit.conftest import Answering, Command, recorded
from tests.verdicts import accepted

PATHS = [path for path, _ in commands(main)]


@pytest.mark.parametrize("flag", ["-h", "--help"])
@pytest.mark.parametrize("path", ["", *PATHS])
def test_help_is_whole_and_has_examples(path: str, flag: str, run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    result = run(*path.split(), flag)
    assert result.code == 0
    assert "..." not in result.out.replace("[ARGS]...", "").replace("]...", "")
    assert re.search(r"^  Examples?:$", result.out, re.MULTILINE), "`kernelmark.commands.help` lists them"


def test_every_example_is_a_command_with_flags_that_it_has() -> None:
    for _, command in [("", main), *commands(main)]:
        for line in (command.epilog or "").splitlines()[2:]:
            name, *words = shlex.split(line.partition("<")[0].partition(">")[0])
            found: click.Command = submit if name == "submit" else main
            while isinstance(found, click.Group) and words:
                found = found.commands[words.pop(0)]
            flags = {flag for param in found.params for flag in param.opts}
            assert {word for word in words if word.startswith("-") and word != "-"} <= flags, line


def test_every_command_is_in_one_section_and_submit_says_its_version(run: Command) -> None:
    placed = [name for names in SECTIONS.values() for name in names]
    assert sorted(placed) == sorted(main.commands)
    assert run("--version", command=submit).out.startswith("submit, version ")


@pytest.mark.parametrize(
    ("words", "incomplete", "found"),
    [
        (["check"], "dou", ["double"]),
        (["problems", "show"], "", ["closed", "double"]),
        (["bench", "double", "kernel.py", "--baseline"], "", ["eager", "none"]),
        (["profile", "double", "kernel.py", "--baseline"], "e", ["eager"]),
        (["board"], "nothing", ["nothing"]),
        (["grade"], "dou", ["double"]),
    ],
)
def test_the_shell_completes_project_names(words: list[str], incomplete: str, found: list[str], project: Path) -> None:
    (project / "reference/double").mkdir(parents=True)
    (project / "reference/double/eager.py").touch()
    assert [each.value for each in completed(words, incomplete)] == found


def test_the_shell_completes_runs(run: Command, judge: Answering, project: Path) -> None:
    judge(accepted())
    run("submit", "double", "kernel.py")
    [verdict] = recorded(project)
    assert [each.value for each in completed(["show"], verdict.run[:2])] == [verdict.run]
    assert completed(["show"], "z") == []


def test_nothing_is_completed_in_a_broken_project(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "kernelmark.toml").write_text("nonsense = [")
    assert completed(["show"], "") == []
    assert capsys.readouterr() == ("", "")


def completed(words: list[str], incomplete: str) -> list[click.shell_completion.CompletionItem]:
    return ShellComplete(main, {}, "kernelmark", "_KERNELMARK_COMPLETE").get_completions(words, incomplete)


def test_stdin_needs_a_language(run: Command, judge: Answering, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    judge(accepted())
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"def twice(x, y): y.copy_(2 * x)\n")))
    assert run("submit", "double", "-", "--language", "py").code == 0
    for arguments, message in (
        (["-"], "FILE - is stdin, which has no suffix; say what it holds with --language"),
        (["kernel.py", "--language", "py"], "--language is for stdin; leave it out"),
        (["-", "--language", "py"], "FILE - is stdin, which was empty; pipe a kernel into it"),  # it was read above
    ):
        result = run("check", "double", *arguments)
        assert (result.code, message in result.err) == (2, True)
