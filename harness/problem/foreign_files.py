"""Finds and reads the files of a problem that was imported from another project. Trusted; imports no torch.

Called by `load` and the judge. A file that has changed since the import is refused. A setting names a checkout outside
the project, so that problem.toml does not depend on where the checkout is.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Self

from pydantic import Field, model_validator

from harness.errors import ProblemError
from harness.files import outside
from harness.languages.extra_files import malformed
from harness.problem.keys import Flag, Spec, Whole
from harness.shared.foreign import FORMS, ForeignForm


class ForeignSource(Spec):
    """A file of another project, by its place and content."""

    name: str = Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,63}\.py$", description="how it is imported, such as task.py")
    path: str = Field(
        min_length=1, max_length=4096, description="where it is; relative to the problem's folder, or to the checkout"
    )
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$", description="of its content: the problem is refused if it changed")
    shown: Flag = Field(default=False, description="whether submissions may import it, too")


class ForeignReference(Spec):
    """A reference in the form of another project, in place of reference.py. It runs in a sandbox of its own."""

    form: ForeignForm = Field(description="whose form it has")
    checkout: Flag = Field(default=False, description="whether paths are relative to the checkout that a setting names")
    seed_bits: Whole = Field(
        default=16, ge=1, le=62, description="gpu-mode: how many bits the seeds have that its generate_input takes"
    )
    files: tuple[ForeignSource, ...] = Field(min_length=1, max_length=16, description="the first one is the reference")

    @model_validator(mode="after")
    def _files_have_places_and_names(self) -> Self:
        for path in (Path(file.path) for file in self.files) if self.checkout else ():
            if path.is_absolute() or ".." in path.parts:
                raise ValueError(f"{path} is not inside the checkout: give a relative path without '..'")
        if len({file.name for file in self.files}) < len(self.files):
            raise ValueError("two files have the same name")
        for file in self.files:
            if why := malformed(file.name):
                raise ValueError(f"{file.name} {why}: choose another `name`")
        return self


Checkouts = Mapping[ForeignForm, Path]
"""The path of each project's checkout, if it is known."""
FILE_BYTES = 1 << 20  # the importer refuses larger files
MAX_FILES = 200_000  # of all kinds in a checkout
MAX_DEPTH = 16  # levels of folders in a checkout; deeper ones are not searched
_AGAIN = "import the problem again, or restore the file"


def located(
    directory: Path, foreign: ForeignReference, checkouts: Checkouts, *, search: bool = True
) -> ForeignReference:
    """The reference with absolute paths of its files, which may have moved within the checkout.

    Args:
        search: whether to look for those that moved, which reads the whole checkout.

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
    files = tuple(_locate(where, number, source, root, search) for number, source in enumerate(foreign.files))
    return foreign.model_copy(update={"files": files, "checkout": False})


def _locate(where: str, number: int, source: ForeignSource, root: Path, search: bool) -> ForeignSource:
    """The file at its path, or another file in the checkout with its content."""
    path = root / source.path
    if _sha256_of(path) != source.sha256:
        others = _same_suffix(root, path.suffix) if search else ()
        moved = next((other for other in others if _sha256_of(other) == source.sha256), None)
        if moved is None:
            what = "has changed since it was imported" if path.is_file() else f"is not in the checkout {root}"
            raise ProblemError(where, f"key `foreign.files[{number}]`: {source.path} {what}", _AGAIN)
        path = moved
    return source.model_copy(update={"path": str(path.absolute())})


def _same_suffix(root: Path, suffix: str) -> Iterator[Path]:
    """The files of a checkout with this suffix, in order; symbolic links to folders are not followed."""
    try:
        for folder, folders, files in outside.walked(root, most=MAX_FILES, deepest=MAX_DEPTH):
            folders[:] = [name for name in folders if not name.startswith(".")]
            yield from (folder / name for name in files if name.endswith(suffix))
    except outside.TooLarge:
        return


def _sha256_of(path: Path) -> str:
    """The hash of a file; "" if it cannot be read or is too large."""
    try:
        return hashlib.sha256(outside.read(path, FILE_BYTES, follow=True)).hexdigest()
    except OSError:
        return ""


def foreign_files(directory: Path, foreign: ForeignReference) -> dict[str, bytes]:
    """The content of a problem's foreign files, by name.

    Raises:
        ProblemError: a file is missing, or has changed since the import.
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
