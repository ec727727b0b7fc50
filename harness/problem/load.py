"""Reads a problem's directory into a `Problem`, and reports every error in one line. Trusted; imports no torch.

The hash that identifies a problem is computed here, over the bytes of its files without the lines for tags, schedule
and visibility: changing those does not change the task, and times for the same task stay in one table. Private cases
are part of the task. Final tests are part of it once the problem is closed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from harness.errors import ProblemError, nearest
from harness.files import outside
from harness.files.identity import length_prefixed_sha256, with_private_cases
from harness.files.outside import real
from harness.problem.foreign_files import Checkouts, ForeignReference, foreign_files, located
from harness.problem.key import validated
from harness.problem.problem import Problem
from harness.problem.schedule import Schedule
from harness.problem.spec import Case, Private, PrivateFile, ProblemFile
from harness.shared.document import DocumentError, parse_toml

# Rules of the competition, not part of the task.
_RULES = ("tags", "visibility", "submission", "marks", *Schedule.model_fields)
_RULE = re.compile(rf"({'|'.join(_RULES)})[ \t]*=[^\r\n]*(\r?\n|\Z)".encode())
_BASELINES = re.compile(rb"(?<=\n)(\r?\n)*\[\[baselines\]\].*\Z", re.DOTALL)
_SLUG = re.compile(r"[a-z0-9_]{1,64}")


class _PrivateCases(NamedTuple):
    """An existing file of private cases; `final`: whether it contains the final tests."""

    path: Path
    raw: bytes
    final: bool


def load(
    directory: Path,
    private: Path | None = None,
    final: datetime | bool | None = None,
    checkouts: Checkouts = MappingProxyType({}),
    schedule: Schedule | None = None,
) -> Problem:
    """Read and check the problem in a directory. The directory's name is the problem's slug.

    Args:
        directory: the problem's directory.
        private: the folder of private cases. The tests in its file `<slug>.toml` become hidden tests of the problem.
        final: whether those in `<slug>.final.toml` do, too; a moment (None: now): if the problem is closed then. They
            are checked in any case.
        checkouts: where the files of foreign problems are.
        schedule: for a problem without a deadline of its own.

    Raises:
        ProblemError: a file is missing or unreadable, or defines something that cannot be graded.
    """
    if not directory.is_dir():
        siblings = [p.name for p in directory.parent.glob("*/") if (p / "problem.toml").is_file()]
        remedy = nearest(directory.name, siblings) if siblings else "give the directory that holds problem.toml"
        raise ProblemError(str(directory), "is not a directory", remedy)
    slug = real(directory).name
    if not _SLUG.fullmatch(slug):
        raise ProblemError(str(directory), f"{slug!r} is not a valid slug", "use lower-case letters, digits and '_'")
    path = directory / "problem.toml"
    toml = _read(path)
    data = _parse(path, toml)
    parts = validated(ProblemFile, data, path)
    if schedule is not None and parts.deadline is None:
        parts = parts.model_copy(update={key: getattr(schedule, key) for key in Schedule.model_fields})
    if parts.foreign:
        parts = parts.model_copy(update={"foreign": located(directory, parts.foreign, checkouts)})
        assert parts.foreign is not None
        foreign_files(directory, parts.foreign)
    identified = {**dict(parts), "slug": slug, "directory": directory, "sha256": _sha256(directory, toml, data)}
    found_files = _read_private(slug, private)
    whole = _with_private(identified, found_files)
    if any(file.final for file in found_files) and parts.deadline is None:
        remedy = f"set one in {path}"
        raise ProblemError(str(found_files[-1].path), "holds final tests, but the problem has no `deadline`", remedy)
    active = _active(found_files, parts, final)
    return whole if active == found_files else _with_private(identified, active)


def identify(
    directory: Path,
    private: Path | None = None,
    final: datetime | bool | None = None,
    schedule: Schedule | None = None,
) -> str:
    """The hash of the problem in a directory, without checking that it can be graded; arguments as for `load`.

    Raises:
        ProblemError: a file is missing, unreadable, or not TOML.
    """
    path = directory / "problem.toml"
    toml = _read(path)
    data = _parse(path, toml)
    sha256 = _sha256(directory, toml, data)
    found_files = _read_private(real(directory).name, private)
    if any(file.final for file in found_files):
        own = _schedule(path, data)
        found_files = _active(found_files, own if own.deadline or schedule is None else schedule, final)
    return with_private_cases(sha256, _private_sha256(found_files)) if found_files else sha256


def check_foreign_files(directory: Path, checkouts: Checkouts, *, search: bool) -> None:
    """Check that the files of a foreign problem, which its hash names, are there and unchanged.

    Args:
        search: whether to look for files that moved; see `located`.

    Raises:
        ProblemError: one is not, or the problem cannot be read.
    """
    path = directory / "problem.toml"
    data = _parse(path, _read(path))
    if "foreign" in data:
        foreign = validated(ForeignReference, data["foreign"], path)
        foreign_files(directory, located(directory, foreign, checkouts, search=search))


def private_sha256(directory: Path, private: Path | None, *, final: bool) -> str | None:
    """The hash of a problem's private cases as in a verdict, with or without final tests; None if there are none.

    Raises:
        ProblemError: a file is unreadable.
    """
    found_files = [file for file in _read_private(real(directory).name, private) if final or not file.final]
    return _private_sha256(found_files) if found_files else None


def read_schedule(directory: Path) -> Schedule:
    """Read the schedule of the problem in a directory, without checking the rest of the file.

    Raises:
        ProblemError: the file is missing, unreadable, or not TOML, or a rule is not valid.
    """
    path = directory / "problem.toml"
    return _schedule(path, _parse(path, _read(path)))


def _schedule(path: Path, data: Mapping[str, Any]) -> Schedule:
    return validated(Schedule, {key: data[key] for key in Schedule.model_fields if key in data}, path)


def _sha256(directory: Path, toml: bytes, data: Mapping[str, Any]) -> str:
    """The hash of the task without private cases."""
    # Foreign files are named in problem.toml, with their hashes.
    reference = b"" if "foreign" in data else _read(directory / "reference.py")
    path = directory / "problem.toml"
    if "baselines" in data:  # they are not part of the task
        toml, data = _without_baselines(path, toml, data)
    return length_prefixed_sha256(_without_rules(path, toml, data), reference)


def _with_private(identified: Mapping[str, Any], files: Sequence[_PrivateCases]) -> Problem:
    """The problem with the tests of private files appended."""
    if not files:
        return Problem(**identified)
    tests = [_private_tests(file) for file in files]
    usual, final = private_files(files[0].path.parent, identified["slug"])
    private = Private(
        file=usual,
        final_file=final,
        sha256=_private_sha256(files),
        cases=sum(map(len, tests)),
        final=len(tests[-1]) if files[-1].final else 0,
    )
    every = (*identified["tests"], *chain.from_iterable(tests))
    sha256 = with_private_cases(identified["sha256"], private.sha256)
    return Problem(**{**identified, "tests": every, "sha256": sha256, "private": private})


def _active(files: list[_PrivateCases], schedule: Schedule, final: datetime | bool | None) -> list[_PrivateCases]:
    """The files whose tests are part of the problem; `final` is as for `load`."""
    if not isinstance(final, bool):
        final = schedule.closed(final or datetime.now(UTC))
    return [file for file in files if final or not file.final]


def private_files(folder: Path, slug: str) -> tuple[Path, Path]:
    """The paths of a problem's private cases and of its final tests, whether or not the files exist."""
    return folder / f"{slug}.toml", folder / f"{slug}.final.toml"


def _read_private(slug: str, private: Path | None) -> list[_PrivateCases]:
    """Read a problem's files in the folder of private cases, the final one last.

    An unreadable file is an error, since its cases would be missing.
    """
    found = []
    for path, final in zip(private_files(private, slug), (False, True), strict=True) if private else ():
        try:
            found.append(_PrivateCases(path, outside.read(path, outside.TEXT_BYTES, follow=True), final))
        except FileNotFoundError:
            continue
        except OSError as error:
            raise ProblemError(str(path), f"cannot be read ({error.strerror})", "let this account read it") from None
    return found


def _private_sha256(files: Sequence[_PrivateCases]) -> str:
    return length_prefixed_sha256(*(file.raw for file in files))


def _private_tests(file: _PrivateCases) -> list[Case]:
    data = _parse(file.path, file.raw)
    if "benchmarks" in data:
        remedy = "a time reveals its sizes; remove it"
        raise ProblemError(str(file.path), "key `benchmarks` is in a private file", remedy)
    tests = validated(PrivateFile, data, file.path).tests
    return [case.model_copy(update={"hidden": True}) for case in tests]


def _without_baselines(path: Path, toml: bytes, data: Mapping[str, Any]) -> tuple[bytes, Mapping[str, Any]]:
    """The file without the baselines at its end, as bytes and as parsed data.

    Raises:
        ProblemError: the baselines are not at the end.
    """
    shorter = _BASELINES.sub(b"", toml)
    expected = {key: value for key, value in data.items() if key != "baselines"}
    if _parse(path, shorter) != expected:
        raise ProblemError(
            str(path), "key `baselines` is not at the end", "move `[[baselines]]` below all other tables"
        )
    return shorter, expected


def _without_rules(path: Path, toml: bytes, data: Mapping[str, Any]) -> bytes:
    """The file without its rules, so that a problem without any rules keeps its hash.

    Rules are removed as lines, so that no other byte changes. Then the rest is parsed again: if a rule spans several
    lines, or some text only looks like a rule, the meaning of the file changes, and the file is refused.
    """
    rules = [key for key in _RULES if key in data]
    if not rules:
        return toml
    head, lines, cut = [], toml.splitlines(keepends=True), set[str]()
    while lines and not lines[0].lstrip().startswith(b"["):  # the first table ends the top-level keys
        line = lines.pop(0)
        if rule := _RULE.fullmatch(line):
            cut.add(rule[1].decode())
        else:
            head.append(line)
    question = b"".join(head + lines)
    expected = {key: value for key, value in data.items() if key not in _RULES}
    try:
        unchanged = _parse(path, question) == expected
    except ProblemError:
        unchanged = False
    if not unchanged:
        remedy = "write each as `key = value` on a line of its own, above the first table"
        where = "` and `".join([key for key in rules if key not in cut] or rules)
        raise ProblemError(str(path), f"key `{where}` is not on a line of its own", remedy)
    return question


def _read(path: Path) -> bytes:
    try:
        return outside.read(path, outside.TEXT_BYTES, follow=True)
    except FileNotFoundError:
        remedy = "a problem is a directory with problem.toml and reference.py"
        raise ProblemError(str(path), "does not exist", remedy) from None
    except OSError as error:
        raise ProblemError(str(path), f"cannot be read ({error.strerror})") from None


def _parse(path: Path, raw: bytes) -> Mapping[str, Any]:
    try:
        return _toml(raw)
    except DocumentError as error:
        remedy = "save the file as UTF-8" if "UTF-8" in str(error) else ""
        raise ProblemError(f"{path}:{error.line}" if error.line else str(path), str(error), remedy) from None


@lru_cache(maxsize=256)  # a board computes each problem's hash several times, and parsing takes most of the time
def _toml(raw: bytes) -> Mapping[str, Any]:  # the result is shared and must not be changed
    return parse_toml(raw)
