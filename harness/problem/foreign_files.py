"""Finds the files of a foreign problem, and reads them: none that differs from what was imported. Trusted; no torch.

`load` and the judge call it. A checkout outside the project is named by a setting, so that problem.toml is the same
wherever the checkout lies.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path

from harness.errors import ProblemError
from harness.files import outside
from harness.problem.spec import Foreign, Source
from harness.shared.foreign import FORMS, ForeignForm

Checkouts = Mapping[ForeignForm, Path]
"""Where the checkout of each project is, if it is known."""
FILE_BYTES = 1 << 20  # the importer takes no larger ones
MOST_FILES = 200_000  # in a checkout, with whatever else lies in it
DEEPEST = 16  # folders below it; no problem is looked for in deeper ones
_AGAIN = "import the problem again, or restore the file"


def located(directory: Path, foreign: Foreign, checkouts: Checkouts) -> Foreign:
    """The same with the absolute path of each file of a checkout, wherever in it the file now is.

    Raises:
        ProblemError: the checkout is not known, or lacks a file.
    """
    if not foreign.checkout:
        return foreign
    where, setting = str(directory / "problem.toml"), FORMS[foreign.form].setting
    named = f"set `{setting}` in kernelmark.toml, or KERNELMARK_{setting.upper()}, to a checkout on this machine"
    if (root := checkouts.get(foreign.form)) is None:
        raise ProblemError(where, f"its files are in a checkout of {foreign.form}, which no setting names", named)
    if not root.is_dir():
        raise ProblemError(where, f"its files are in the checkout {root}, which is not there", named)
    files = tuple(_found(where, number, source, root) for number, source in enumerate(foreign.files))
    return foreign.model_copy(update={"files": files, "checkout": False})


def _found(where: str, number: int, source: Source, root: Path) -> Source:
    """The file at its place, or else the one with its content."""
    path = root / source.path
    if _sum(path) != source.sha256:
        moved = next((each for each in _same_suffix(root, path.suffix) if _sum(each) == source.sha256), None)
        if moved is None:
            what = "has changed since it was imported" if path.is_file() else f"is not in the checkout {root}"
            raise ProblemError(where, f"key `foreign.files[{number}]`: {source.path} {what}", _AGAIN)
        path = moved
    return source.model_copy(update={"path": str(path.absolute())})


def _same_suffix(root: Path, suffix: str) -> Iterator[Path]:
    """The files of a checkout with that suffix, in order; symbolic links to folders are not followed."""
    try:
        for folder, folders, files in outside.walked(root, most=MOST_FILES, deepest=DEEPEST):
            folders[:] = [each for each in folders if not each.startswith(".")]
            yield from (folder / name for name in files if name.endswith(suffix))
    except outside.TooLarge:
        return


def _sum(path: Path) -> str:
    """The hash of a file; empty if it cannot be one of a problem."""
    try:
        return hashlib.sha256(outside.read(path, FILE_BYTES, follow=True)).hexdigest()
    except OSError:
        return ""


def foreign_files(directory: Path, foreign: Foreign) -> dict[str, bytes]:
    """The content of a problem's foreign files, by name.

    Raises:
        ProblemError: one is not there, or is not the one that was imported.
    """
    contents: dict[str, bytes] = {}
    for number, source in enumerate(foreign.files):
        where = f"{directory / 'problem.toml'}: key `foreign.files[{number}]`"
        try:
            raw = outside.read(directory / source.path, FILE_BYTES, follow=True)
        except OSError as error:
            what = f"{source.path} cannot be read ({error.strerror})"
            raise ProblemError(where, what, "restore the file, or import the problem again from where it is") from None
        if hashlib.sha256(raw).hexdigest() != source.sha256:
            raise ProblemError(where, f"{source.path} has changed since it was imported", _AGAIN)
        contents[source.name] = raw
    return contents
