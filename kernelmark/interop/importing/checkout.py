"""A problem of another project as its checkout states it, before any of its code has run. Trusted."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.errors import UsageError, nearest
from harness.files import outside
from harness.problem.foreign_files import FILE_BYTES, MAX_DEPTH, MAX_FILES
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
    """Whether submissions may import it, too."""

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.content).hexdigest()


@dataclass(frozen=True)
class Candidate:
    """A problem that was found; it is read later, so that an error in it does not affect the others."""

    form: ForeignForm
    name: str
    """For people, and for the command line: `pmpp_v2/sort_py`, `1/19`."""
    label: str
    """The name in a list: `1/19 ReLU`."""
    slug: str
    title: str
    file: Path
    """`task.yml`, or the Python file."""

    @property
    def names(self) -> set[str]:
        """Its names on the command line, that of its group included: `pmpp_v2`, `1`."""
        group = self.name.rpartition("/")[0]
        return {self.name, self.name.removesuffix("_py"), self.label, self.slug, group}


@dataclass(frozen=True)
class ForeignProblem:
    """A problem as its checkout states it."""

    candidate: Candidate
    files: tuple[ForeignFile, ...]
    """The reference first, then the files that it needs."""
    tests: tuple[Mapping[str, Any], ...] = ({},)
    """The arguments of `generate_input`, without the seed."""
    benchmarks: tuple[Mapping[str, Any], ...] = ({},)
    limits: Mapping[str, float] = field(default_factory=dict)
    needs_gpu: bool = True

    @property
    def form(self) -> ForeignForm:
        return self.candidate.form

    @property
    def cases(self) -> tuple[Mapping[str, Any], ...]:
        return (*self.tests, *self.benchmarks)


def read_file(root: Path, path: Path, name: str) -> tuple[Path, bytes]:
    """The real path of a file of the checkout, and its content; `name` is what messages call it.

    Raises:
        NotImportedError: it is not in the checkout, is too large, or cannot be read.
    """
    real = outside.real(path)
    if not real.is_relative_to(outside.real(root)):
        raise NotImportedError(f"its file {name!r} is outside the checkout")
    if not real.is_file():
        raise NotImportedError(f"its file {name!r} does not exist")
    try:
        return real, outside.read(real, FILE_BYTES)
    except outside.TooLarge:
        raise NotImportedError(f"its file {name!r} is larger than {FILE_BYTES >> 20} MiB") from None
    except OSError as error:
        raise NotImportedError(f"its file {name!r} cannot be read ({error.strerror})") from None


def walked(root: Path) -> Iterator[tuple[Path, list[str], list[str]]]:
    """The folders of a checkout, as `outside.walked`, without names that no text can hold.

    Raises:
        UsageError: it holds more than any checkout does.
    """
    try:
        for folder, folders, files in outside.walked(root, most=MAX_FILES, deepest=MAX_DEPTH):
            folders[:] = filter(str.isprintable, folders)
            yield folder, folders, [*filter(str.isprintable, files)]
    except outside.TooLarge as error:
        raise UsageError(str(root), str(error.strerror), "name the folder of the checkout alone") from None


def slug_of(*parts: str) -> str:
    """A slug, at most 64 characters long, from words with any characters."""
    words = re.sub(r"[^a-z0-9]+", "_", "_".join(parts).lower())
    return words[:64].strip("_")


def chosen(candidates: list[Candidate], names: Sequence[str], where: Path) -> tuple[list[Candidate], dict[str, str]]:
    """The candidates with these names or in these groups (`pmpp_v2`, `1`), or all if there are no names; and the names
    that match nothing, with a message about each.

    Raises:
        UsageError: the checkout holds no problem.
    """
    if not candidates:
        raise UsageError(str(where), "holds no such problem", "name the folder of a checkout")
    picked, unknown = dict[Candidate, None](), dict[str, str]()
    for name in names:
        matching = [candidate for candidate in candidates if name in candidate.names]
        if not matching:
            known = [candidate.name for candidate in candidates]
            unknown[f"{name:.100}"] = f"no such problem; {nearest(name, known)}"
        picked |= dict.fromkeys(matching)
    return [*picked] if names else candidates, unknown
