"""The files in a folder or an archive with submissions, and in archives within it.

`submissions` calls it. Trusted, over files that strangers wrote: links are not followed, archives are read in memory,
no file is read beyond the size of a submission, and nothing is extracted. Hidden files and those of tools are skipped.
"""

from __future__ import annotations

import io
import lzma
import stat
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath

from harness.errors import SubmissionError, UsageError
from harness.files import outside
from harness.languages import LANGUAGES
from kernelmark.course.owner import Owner, own_name

_MOST_FILES = 20_000
_DEEPEST = 32  # how many levels of folders are searched for kernels
_ARCHIVE_BYTES = 8 << 20  # the most that is read of a submitted archive
_ARCHIVE_FILES = 1_000
_TOOLS = {"__MACOSX", "__pycache__", "venv", "node_modules"}  # folders that tools make
# The exceptions of zipfile for an archive or a member that is damaged, encrypted, or compressed in an unknown way; bz2
# raises an OSError without a number.
_DAMAGE = (
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, EOFError, RuntimeError, NotImplementedError),
    *(ValueError, OverflowError, MemoryError),
)


@dataclass(frozen=True)
class CourseFile:
    """A file of a submission, a link, or an empty folder."""

    path: PurePosixPath
    read: Callable[[int], bytes]
    """Reads at most this many bytes."""
    is_folder: bool = False
    is_link: bool = False
    """Whether it is a symbolic link, which is not followed and so is no kernel."""
    whose: Owner | None = None
    """The owner, if it does not follow from the name."""

    @property
    def owner(self) -> Owner:
        """The owner; by default by the name of the outermost folder, or of the file."""
        if self.whose is not None:
            return self.whose
        outermost, *inner = self.path.parts
        is_folder = bool(inner) or self.is_folder
        stem = PurePosixPath(self.path.stem).stem if self.is_text else self.path.stem
        return Owner.of(outermost if is_folder else stem, is_folder=is_folder)

    @property
    def name(self) -> str:
        """The name that its author gave it, without the part that a platform put before it and without `.txt` after
        `.py`; the suffix is in lower case.
        """
        own = PurePosixPath(self.path.name if len(self.path.parts) > 1 else own_name(self.path.name))
        own = PurePosixPath(own.stem) if self.is_text else own
        return own.with_suffix(own.suffix.lower()).name

    @property
    def language(self) -> str:
        """The language by its suffix in lower case; "" if it is no kernel. `.py.txt` counts as `.py`."""
        *most, last = ["", *(suffix.lower() for suffix in self.path.suffixes)]
        suffix = most[-1] if last == ".txt" and most else last
        return suffix[1:] if suffix[1:] in LANGUAGES and not self.is_folder and not self.is_link else ""

    @property
    def is_text(self) -> bool:
        """Whether it is a kernel that was saved as a text file."""
        return bool(self.language) and self.path.suffix.lower() == ".txt"

    @property
    def is_archive(self) -> bool:
        return not self.is_folder and not self.is_link and self.path.suffix.lower() == ".zip"

    @property
    def has_owner(self) -> bool:
        """Whether it belongs to an author. A text file next to all submissions may be the teacher's."""
        is_work = bool(self.language) or self.is_archive
        return is_work or self.is_folder or len(self.path.parts) > 1 or bool(self.owner.id)

    def inside(self) -> list[CourseFile]:
        """The files in it, if it is an archive; none if it is damaged or too large.

        Raises:
            UsageError: it cannot be read, which is not the author's fault.
        """
        if not self.is_archive:
            return []
        try:
            members = [member for member in self._opened().infolist() if not _is_folder(member)]
        except (SubmissionError, OSError, *_DAMAGE):
            return []
        found = [(self.path / _path(member), member) for member in members[:_ARCHIVE_FILES]]
        every = [
            CourseFile(path, partial(self._member, member.filename), is_link=_is_link(member), whose=self.whose)
            for path, member in found
        ]
        return [file for file in every if not _ignored(file.path)]

    def _opened(self) -> zipfile.ZipFile:
        content = self.read(_ARCHIVE_BYTES + 1)
        if len(content) > _ARCHIVE_BYTES:
            raise SubmissionError(str(self.path), f"is larger than {_ARCHIVE_BYTES:,} bytes", "hand in the files")
        return zipfile.ZipFile(io.BytesIO(content))

    def _member(self, name: str, limit: int) -> bytes:
        archive = self._opened()
        return _member(archive, archive.getinfo(name), limit)


def files_in(place: Path) -> list[CourseFile]:
    """The files and the empty folders in a folder or a zip archive, without hidden ones except for `.git` of clones.

    Raises:
        UsageError: it is neither, cannot be read, or holds too many files.
    """
    files = [file for file in _files(place) if not _ignored(file.path) or _is_clone(file)]
    full = {folder for file in files for folder in file.path.parents}
    return [file for file in files if not file.is_folder or file.path not in full]


def _ignored(path: PurePosixPath) -> bool:
    return any(part.startswith(".") or part in _TOOLS for part in path.parts)


def _is_clone(file: CourseFile) -> bool:
    return file.is_folder and file.path.name == ".git" and not _ignored(file.path.parent)


def _files(place: Path) -> Iterator[CourseFile]:
    if place.is_dir():
        yield from _in_folder(place)
        return
    try:
        with outside.opened(place, follow=True):
            archive = zipfile.ZipFile(place)
        members = archive.infolist()
    except (OSError, *_DAMAGE) as error:
        why = getattr(error, "strerror", None) or "is not a zip archive"
        raise UsageError(str(place), f"cannot be read ({why})", "name a folder, or a zip archive") from None
    paths = [(member, _path(member)) for member in members]
    paths = [(member, path) for member, path in paths if not _ignored(path) or path.name == ".git"]
    if len(paths) > _MOST_FILES:
        raise UsageError(str(place), f"holds more than {_MOST_FILES:,} files")
    for member, path in paths:
        if path.parts:
            is_folder, is_link = _is_folder(member), _is_link(member)
            yield CourseFile(path, partial(_member, archive, member), is_folder=is_folder, is_link=is_link)


def _in_folder(folder: Path) -> Iterator[CourseFile]:
    try:
        for inner, folders, names in outside.walked(folder, most=_MOST_FILES, deepest=_DEEPEST):
            if ".git" in folders:
                yield CourseFile(PurePosixPath((inner / ".git").relative_to(folder)), partial(_content, inner), True)
            folders[:] = [name for name in folders if not _ignored(PurePosixPath(name))]
            if inner != folder:
                yield CourseFile(PurePosixPath(inner.relative_to(folder)), partial(_content, inner), is_folder=True)
            for name in names:
                path, is_link = PurePosixPath((inner / name).relative_to(folder)), (inner / name).is_symlink()
                yield CourseFile(path, partial(_content, inner / name), is_link=is_link)
    except outside.TooLarge:
        raise UsageError(str(folder), f"holds more than {_MOST_FILES:,} files") from None


def _path(member: zipfile.ZipInfo) -> PurePosixPath:
    """The path of a member; some programs on Windows separate its parts by backslashes."""
    return PurePosixPath(member.filename.replace("\\", "/").lstrip("/"))


def _is_folder(member: zipfile.ZipInfo) -> bool:
    return member.filename.endswith(("/", "\\"))


def _is_link(member: zipfile.ZipInfo) -> bool:
    return stat.S_ISLNK(member.external_attr >> 16)


def _content(file: Path, limit: int) -> bytes:
    try:
        with outside.opened(file) as opened:
            return opened.read(limit)
    except outside.RefusedFile as error:
        raise SubmissionError(str(file), f"cannot be read ({error.strerror})", "hand in the file itself") from None
    except OSError as error:
        raise UsageError(str(file), f"cannot be read ({error.strerror})") from None


def _member(archive: zipfile.ZipFile, member: zipfile.ZipInfo, limit: int) -> bytes:
    try:
        with archive.open(member) as opened:
            return opened.read(limit)
    except (OSError, *_DAMAGE) as error:
        if isinstance(error, OSError) and error.errno:  # the archive cannot be read, rather than this member
            raise UsageError(str(archive.filename), f"cannot be read ({error.strerror})") from None
        remedy = "hand it in again, not compressed or encrypted"
        raise SubmissionError(member.filename, f"cannot be read from the archive ({error})", remedy) from None
