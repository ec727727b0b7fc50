"""A problem in somebody else's form, as its checkout states it, before any of its code has run. Trusted."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.errors import UsageError, nearest
from harness.files import outside
from harness.problem.foreign_files import DEEPEST, FILE_BYTES, MOST_FILES
from harness.shared.foreign import ForeignForm


class NotImportedError(Exception):
    """A problem is left out; the text says why, in one line."""


@dataclass(frozen=True)
class ForeignFile:
    """A file of a problem, as it was read."""

    name: str
    """How it is imported: `task.py`."""
    path: Path
    """Where it is, symbolic links resolved."""
    content: bytes
    shown: bool

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.content).hexdigest()


@dataclass(frozen=True)
class Found:
    """What a checkout says of a problem."""

    form: ForeignForm
    name: str
    """For people, and for the command line: `pmpp_v2/sort_py`, `1/19`."""
    label: str
    """The name in a list: `1/19 ReLU`."""
    slug: str
    title: str
    files: tuple[ForeignFile, ...]
    tests: tuple[Mapping[str, Any], ...] = ({},)
    """The arguments of `generate_input`, without the seed."""
    benchmarks: tuple[Mapping[str, Any], ...] = ({},)
    limits: Mapping[str, float] = field(default_factory=dict)
    needs_gpu: bool = True

    @property
    def cases(self) -> tuple[Mapping[str, Any], ...]:
        return (*self.tests, *self.benchmarks)


@dataclass(frozen=True)
class Candidate:
    """Where a problem is; `read` fails for one that cannot be imported, and the others are not affected."""

    form: ForeignForm
    name: str
    label: str
    slug: str
    title: str
    file: Path
    """`task.yml`, or the Python file."""


def inside(root: Path, path: Path, name: str) -> Path:
    """The real path of a file of the checkout.

    Raises:
        NotImportedError: it is not in the checkout, or is no file.
    """
    real = Path(os.path.realpath(path))
    if not real.is_relative_to(os.path.realpath(root)):
        raise NotImportedError(f"its file {name!r} is outside the checkout")
    if not real.is_file():
        raise NotImportedError(f"its file {name!r} does not exist")
    return real


def looked_through(root: Path) -> Iterator[tuple[Path, list[str], list[str]]]:
    """The folders of a checkout, as `outside.walked`, without names that no text can hold.

    Raises:
        UsageError: it holds more than any checkout does.
    """
    try:
        for folder, folders, files in outside.walked(root, most=MOST_FILES, deepest=DEEPEST):
            folders[:] = filter(str.isprintable, folders)
            yield folder, folders, [*filter(str.isprintable, files)]
    except outside.TooLarge as error:
        raise UsageError(str(root), str(error.strerror), "name the folder of the checkout alone") from None


def content(path: Path, name: str) -> bytes:
    """The bytes of a file.

    Raises:
        NotImportedError: it is too large, or cannot be read.
    """
    try:
        return outside.read(path, FILE_BYTES)  # its links are resolved
    except outside.TooLarge:
        raise NotImportedError(f"its file {name!r} is larger than {FILE_BYTES >> 20} MiB") from None
    except OSError as error:
        raise NotImportedError(f"its file {name!r} cannot be read ({error.strerror})") from None


def slug_of(*parts: str) -> str:
    """A slug of words that may hold anything, at most 64 characters long."""
    words = re.sub(r"[^a-z0-9]+", "_", "_".join(parts).lower())
    return words[:64].strip("_")


def chosen(candidates: list[Candidate], names: tuple[str, ...], where: Path) -> list[Candidate]:
    """Those with the names, or in the groups that are named: `pmpp_v2`, `1`; all without names.

    Raises:
        UsageError: nothing has one of the names.
    """
    if not candidates:
        raise UsageError(str(where), "holds no such problem", "name the folder of a checkout")
    picked: list[Candidate] = []
    for name in names:
        matching = [each for each in candidates if name in _names(each)]
        if not matching:
            raise UsageError(f"{name:.100}", "no such problem", nearest(name, [each.name for each in candidates]))
        picked += [each for each in matching if each not in picked]
    return picked if names else candidates


def _names(candidate: Candidate) -> set[str]:
    group = candidate.name.rpartition("/")[0]
    return {candidate.name, candidate.name.removesuffix("_py"), candidate.label, candidate.slug, group}
