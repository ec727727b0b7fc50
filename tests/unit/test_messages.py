"""What messages recommend exists: each option in some command, and each command with the options that it is given."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from harness.errors import UsageError, said
from kernelmark.commands.cli import main, submit
from kernelmark.commands.help import commands
from kernelmark.text import profiles, show
from tests.verdicts import accepted, failed

ROOT = Path(__file__).resolve().parents[2]
# Programs of others, with options of their own, and code that is graded.
_OTHERS = (
    "kernelmark/diagnostics/selftest/attacks/",
    "kernelmark/diagnostics/selftest/honest/",
    "harness/sandbox/bwrap.py",
)
FOREIGN = {
    "--cached", "--default-stream", "--force-reinstall", "--index-url", "--privileged", "--quiet", "--resources",
    "--seccomp", "--to", "--unshallow", "--unshare-all", "--upgrade",
}  # fmt: skip
_OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*\b")
_COMMAND = re.compile(r"`((?:kernelmark|submit) [^`]*)`")
_PLACEHOLDER = re.compile(r"\b(FILE|PROBLEM|SLUG)\b")


def texts() -> Iterator[tuple[str, str]]:
    """Every text of several words in the product, with its place; a value that is filled in is an `x`."""
    for package in ("harness", "leaderboard", "kernelmark"):
        for file in sorted((ROOT / package).rglob("*.py")):
            name = file.relative_to(ROOT).as_posix()
            if not name.startswith(_OTHERS):
                yield from (
                    (f"{name}:{line}", text) for line, text in _texts(ast.parse(file.read_text())) if " " in text
                )


def _texts(module: ast.Module) -> Iterator[tuple[int, str]]:
    for node in (inner for statement in module.body[1:] for inner in ast.walk(statement)):  # without its docstring
        if isinstance(node, ast.JoinedStr):
            parts = (str(value.value) if isinstance(value, ast.Constant) else "x" for value in node.values)
            yield node.lineno, "".join(parts)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value


def options(command: click.Command) -> set[str]:
    return {each for param in command.params for each in (*param.opts, *param.secondary_opts)} | {"--help", "--version"}


def test_every_option_that_a_text_mentions_exists() -> None:
    known = set.union(options(submit), *(options(command) for _, command in commands(main)))
    assert "--thorough" in known
    unknown = [(at, found) for at, text in texts() for found in _OPTION.findall(text) if found not in known | FOREIGN]
    assert unknown == []


def test_every_command_that_a_text_mentions_exists_with_its_options() -> None:
    wrong = []
    for at, text in texts():
        for line in _COMMAND.findall(text):
            try:
                name, *words = shlex.split(line)
            except ValueError:
                continue  # a part of one, whose rest is filled in
            command: click.Command = submit if name == "submit" else main
            while isinstance(command, click.Group) and words and words[0] in command.commands:
                command = command.commands[words.pop(0)]
            flags = {word.partition("=")[0] for word in words if word.startswith("--")}
            if flags - options(command) or (command is main and words and not words[0].startswith(("-", "x", "{"))):
                wrong.append((at, line))
    assert wrong == []


def test_no_message_names_a_file_by_a_placeholder() -> None:
    """Help says FILE; a message after a command knows which."""
    wrong = []
    for at, text in texts():
        wrong += [(at, line) for line in _COMMAND.findall(text) if _PLACEHOLDER.search(line) and "\n" not in text]
    assert wrong == []


@pytest.mark.parametrize("reason", ["budget", "unstable"])
def test_a_profile_recommends_only_its_own_options(reason: str) -> None:
    own = next(options(command) for path, command in commands(main) if path == "profile")
    result = accepted(modes=["calls"], effort="quick")
    cases = tuple(benchmark.model_copy(update={"stop_reason": reason}) for benchmark in result.benchmarks)
    score = result.score and result.score.model_copy(update={"confidence": 0.5})
    result = result.model_copy(update={"benchmarks": cases, "score": score})
    cut = failed(message="no").model_copy(update={"log": "a line\n" * 1000})
    for shown in (profiles.measured(result), show.verdict(cut, record=False, profiled=True)):
        lines = "\n".join(shown)
        assert "`kernelmark bench" in lines or "kernelmark bench --format json" in lines
        assert set(_OPTION.findall(re.sub(r"kernelmark bench [^`\n]*", "", lines))) <= own


def test_an_error_is_one_sentence() -> None:
    assert str(UsageError("x.py", "is empty", "save it first")) == "x.py is empty; save it first"
    assert str(UsageError("nosuch", "no such problem")) == "nosuch: no such problem"


def test_what_an_error_says_with_a_verb_continues_its_sentence() -> None:
    nouns, verbs = {"its", "this", "devices", "attacks"}, set()
    for file in (
        file for package in ("harness", "leaderboard", "kernelmark") for file in (ROOT / package).rglob("*.py")
    ):
        if not file.relative_to(ROOT).as_posix().startswith(_OTHERS):
            begun = [text.partition(" ")[0] for text in _said_in_errors(ast.parse(file.read_text()))]
            verbs |= {word for word in begun if re.fullmatch("[a-z]+(s|ed)|cannot|could", word)} - nouns
    assert len(verbs) > 20
    assert {word for word in verbs if said("x", f"{word} y") != f"x {word} y"} == set()


def _said_in_errors(module: ast.Module) -> Iterator[str]:
    """What the errors of a module say of their subject, where it is written in the call."""
    for node in ast.walk(module):
        match node:
            case ast.Call(func=ast.Name(id="UsageError" | "ProblemError" | "SubmissionError"), args=[_, what, *_]):
                if isinstance(what, ast.Constant | ast.JoinedStr):
                    yield next(text for _, text in _texts(ast.Module([ast.Pass(), ast.Expr(what)], [])))
