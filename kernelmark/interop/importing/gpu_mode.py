"""Finds the problems in a checkout of gpu-mode's reference-kernels, and reads their files.

Trusted code over untrusted files: a `task.yml` may hold only plain values within bounds.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from harness.files.outside import real
from harness.problem.spec import Limits
from kernelmark.interop.importing.checkout import (
    Candidate,
    ForeignFile,
    ForeignProblem,
    NotImportedError,
    read_file,
    slug_of,
    walked,
)

_REFERENCE = "reference.py"
_SHOWN = ("task.py", "utils.py")
_PYTHON = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}\.py")
_CASES = 200
_MAX_S = 3600.0
_MAX_TIMED_S = 900.0  # no one else can use the device meanwhile


def candidates(root: Path) -> list[Candidate]:
    """Every folder with a task.yml, in the order of their names; symbolic links are not followed."""
    found = []
    for folder, folders, files in walked(root):
        folders[:] = [name for name in folders if not name.startswith(".")]
        if "task.yml" in files:
            parts = real(folder).parts[-2:]
            name, last = "/".join(parts), parts[-1].removesuffix("_py")
            title = f"{last.replace('_', ' ')} (gpu-mode, {parts[0]})"
            slug = slug_of("gpu_mode", *parts[:-1], last)
            found.append(Candidate("gpu-mode", name, name, slug, title, folder / "task.yml"))
    return sorted(found, key=lambda candidate: candidate.name)


def read(root: Path, candidate: Candidate) -> ForeignProblem:
    """The problem as its files state it.

    Raises:
        NotImportedError: it cannot be graded here.
    """
    task = parse_task(read_file(root, candidate.file, "task.yml")[1])
    if (language := task.get("lang", "py")) != "py":
        raise NotImportedError(f"its submissions are in {str(language)[:20]!r}, not in Python")
    if task.get("multi_gpu"):
        raise NotImportedError("it runs on several GPUs at once (multi_gpu in its task.yml)")
    files = _needed(_listed(root, candidate.file.parent, task))
    on_gpu = any(b"cuda" in file.content for file in files)
    return ForeignProblem(candidate, files, _cases(task, "tests"), _cases(task, "benchmarks"), _limits(task), on_gpu)


def _listed(root: Path, folder: Path, task: Mapping[str, Any]) -> dict[str, ForeignFile]:
    entries, listed = task.get("files"), dict[str, ForeignFile]()
    if not isinstance(entries, list):
        raise NotImportedError("its task.yml lists no files")
    for entry in entries:
        name, source = (entry.get(key) if isinstance(entry, dict) else None for key in ("name", "source"))
        if not isinstance(name, str) or not isinstance(source, str):
            raise NotImportedError("its task.yml has a file without name or source")
        if source == "@SUBMISSION@" or not _PYTHON.fullmatch(name):
            continue
        if Path(source).is_absolute():
            raise NotImportedError(f"its file {source[:100]!r} is outside the checkout")
        listed[name] = ForeignFile(name, *read_file(root, folder / source, source[:100]), name in _SHOWN)
    if _REFERENCE not in listed:
        raise NotImportedError(f"its task.yml lists no {_REFERENCE}")
    return listed


def _needed(listed: Mapping[str, ForeignFile]) -> tuple[ForeignFile, ...]:
    """The reference, then the files that it imports. The project's grader, eval.py, is not needed."""
    needed, waiting = set[str](), {_REFERENCE, *_SHOWN} & listed.keys()
    while waiting:
        needed.add(name := min(waiting))
        waiting = (waiting | (_imported(listed[name]) & listed.keys())) - needed
    if len(needed) > 16:
        raise NotImportedError("its reference imports more than 16 files")
    return tuple(listed[name] for name in (_REFERENCE, *sorted(needed - {_REFERENCE})))


def _imported(file: ForeignFile) -> set[str]:
    """The files that a file may import, by the names in its import statements."""
    try:
        nodes = [*ast.walk(ast.parse(file.content))]
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise NotImportedError(f"its file {file.name!r} is not Python ({type(error).__name__})") from None
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module}
    return {f"{name.partition('.')[0]}.py" for name in names}


def _cases(task: Mapping[str, Any], key: str) -> tuple[Mapping[str, Any], ...]:
    """The arguments of each case, without its seed: kernelmark draws a secret one."""
    entries = task.get(key)
    if not isinstance(entries, list) or not entries:
        raise NotImportedError(f"its task.yml has no {key}")
    if len(entries) > _CASES:
        raise NotImportedError(f"its task.yml has more than {_CASES} {key}")
    for entry in entries:
        if not isinstance(entry, dict) or not all(isinstance(name, str) for name in entry):
            raise NotImportedError(f"its task.yml has {key} that are not tables of arguments")
        for name, value in entry.items():
            if not isinstance(value, bool | int | float | str):
                kind = type(value).__name__
                raise NotImportedError(f"the argument {name[:40]!r} is a {kind}: only numbers and text can be stated")
    return tuple({name: value for name, value in entry.items() if name != "seed"} for entry in entries)


def _limits(task: Mapping[str, Any]) -> dict[str, float]:
    """Their limit for all tests together becomes the limit of a build here, since a build may compile; their limit for
    all benchmarks becomes that of timing each one.
    """
    limits, default = {}, Limits().model_dump()
    for key, ours, most_s in (("test_timeout", "build_s", _MAX_S), ("benchmark_timeout", "time_s", _MAX_TIMED_S)):
        seconds = task.get(key)
        if not isinstance(seconds, bool) and isinstance(seconds, int | float) and seconds > default[ours]:
            limits[ours] = min(float(seconds), most_s)
    return limits


_BYTES = 1 << 20
_EVENTS = 50_000
_DEPTH = 20


def parse_task(raw: bytes) -> dict[str, Any]:
    """The document as plain values.

    Raises:
        NotImportedError: it is too large or too deep, has tags or aliases, or is not a table.
    """
    if len(raw) > _BYTES:
        raise NotImportedError(f"its task.yml is larger than {_BYTES >> 20} MiB")
    try:
        text = raw.decode("utf-8")
        _refuse_what_is_not_plain(text)
        document = yaml.safe_load(text)
    except UnicodeDecodeError:
        raise NotImportedError("its task.yml is not UTF-8 text") from None
    except (yaml.YAMLError, ValueError, OverflowError) as error:  # ValueError: a number of 5,000 digits, a wrong date
        where = f" at line {mark.line + 1}" if (mark := getattr(error, "problem_mark", None)) else ""
        why = getattr(error, "problem", None) or type(error).__name__
        raise NotImportedError(f"its task.yml is not YAML{where} ({why})") from None
    if not isinstance(document, dict):
        raise NotImportedError("its task.yml is not a table")
    return document


def _refuse_what_is_not_plain(text: str) -> None:
    """Read YAML events without building values from them, so that a document that would expand is refused before."""
    depth = 0
    for number, event in enumerate(yaml.parse(text, Loader=yaml.SafeLoader)):
        if number > _EVENTS:
            raise NotImportedError(f"its task.yml has more than {_EVENTS:,} values")
        if isinstance(event, yaml.AliasEvent):
            raise NotImportedError("its task.yml has an alias (*), which no task needs")
        if isinstance(event, yaml.NodeEvent) and getattr(event, "tag", None) is not None:
            raise NotImportedError("its task.yml has a tag (!), which no task needs")
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > _DEPTH:
            raise NotImportedError(f"its task.yml is nested more than {_DEPTH} deep")
