"""Finds the kernel among the files of an author, and the other files that it uses.

`submissions` calls it. Trusted, over sources that strangers wrote: they are searched as text, and never run.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Sequence
from typing import NamedTuple

from harness.errors import SubmissionError
from harness.languages import LANGUAGES, known
from harness.submission import MAX_BESIDE, MAX_SOURCE_BYTES
from kernelmark.course.files import CourseFile
from kernelmark.text.terminal import visible

_SHOWN = 4  # how many files a message names
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_MOST_KERNELS = MAX_BESIDE + 1  # how many files are read to find the kernel


class Wanted(NamedTuple):
    """The entry that a kernel defines, and the name that its file should have; either may be empty."""

    entry: str = ""
    file: str = ""


ANY = Wanted()
"""Any kernel."""


class ChosenKernel(NamedTuple):
    """The file to grade with its source, the files that it includes or imports, and remarks for the author."""

    file: CourseFile
    source: bytes
    beside: dict[str, bytes]
    remarks: tuple[str, ...]


def chosen(author: str, files: Sequence[CourseFile], wanted: Wanted) -> ChosenKernel:
    """The kernel among an author's files: the one with the wanted name, or else the only one, or else the only one that
    defines the entry.

    Raises:
        SubmissionError: there is none, or more than one could be meant; or a file is damaged.
        UsageError: a file cannot be read, which is not the author's fault.
    """
    kernels = [file for file in files if file.language]
    kernels = [file for file in kernels if not file.is_text] or kernels
    if not kernels:
        raise _without_kernel(author, [file for file in files if not file.is_folder])
    named = [file for file in kernels if file.name.casefold() == wanted.file.casefold()]
    among = named or kernels
    if 1 < len(among) <= _MOST_KERNELS and wanted.entry:
        among = [file for file in among if _defines(file, wanted.entry)] or among
    if len(among) > 1:
        names = visible(", ".join(str(file.path) for file in among[:_SHOWN]))
        raise SubmissionError(author, f"handed in {len(among)} kernels ({names})", "leave one")
    [kernel] = among
    source, remarks = _text(kernel)
    if wanted.file and not named:
        remarks.insert(0, f"there is no {wanted.file}, so {visible(kernel.name)} counts")
    return ChosenKernel(kernel, source, _used(kernel, source, files), tuple(remarks))


def listed(files: Sequence[CourseFile]) -> str:
    """The names of the first files, and how many more there are."""
    more = f" and {len(files) - _SHOWN} more" if len(files) > _SHOWN else ""
    return ", ".join(file.path.name for file in files[:_SHOWN]) + more


def _without_kernel(author: str, found: Sequence[CourseFile]) -> SubmissionError:
    what = f"no kernel (found {listed(found)})" if found else "no kernel (its folder is empty)"
    notebook = next((file for file in found if file.path.suffix.lower() == ".ipynb"), None)
    if notebook is not None:
        export = f"export it with `jupyter nbconvert --to script {visible(notebook.name)}`"
        return SubmissionError(author, what, f"a notebook cannot be graded: {export}, and hand in the .py file")
    if any(file.is_archive for file in found):
        return SubmissionError(author, what, "the archive is damaged, too large or without a kernel: hand in the files")
    if links := [file for file in found if file.is_link]:
        return SubmissionError(author, what, f"links ({visible(listed(links))}) are not followed: hand in the file")
    return SubmissionError(author, what, f"its name must end in {known()}")


def _text(file: CourseFile) -> tuple[bytes, list[str]]:
    """The content in UTF-8, and remarks on how the file was saved."""
    content = file.read(MAX_SOURCE_BYTES + 1)
    name, remarks = visible(file.path.name), list[str]()
    if file.is_text:
        remarks.append(f"{name} counts as {visible(file.name)}; hand it in without .txt")
    try:
        if content.startswith(_UTF_16):
            content = content.decode("utf-16").encode()
            remarks.append(f"{name} is UTF-16; save it as UTF-8")
        content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        what = f"holds the byte 0x{content[error.start]:02x} in line {line}, which is not {error.encoding.upper()}"
        remedy = "save it as UTF-8: in Notepad, `Save as` with that encoding"
        raise SubmissionError(name, what, remedy) from None
    return content, remarks


def _defines(file: CourseFile, entry: str) -> bool:
    """Whether a source seems to define the entry. In a compiled language its name may end in a dtype."""
    name = re.escape(entry.encode())
    python = rb"^(?:(?:async[ \t]+)?def|class)[ \t]+%b\b|^%b[ \t]*[:=][^=]" % (name, name)
    compiled = rb"\b%b(?:_\w+)?[ \t\r\n]*\(" % name
    try:
        source, _ = _text(file)
    except SubmissionError:
        return False
    return re.search(python if file.language == "py" else compiled, source, re.MULTILINE) is not None


def _used(kernel: CourseFile, source: bytes, files: Sequence[CourseFile]) -> dict[str, bytes]:
    """The files in the kernel's folder that it includes or imports, directly or through others, by name."""
    suffixes = LANGUAGES[kernel.language].extra_files
    near = {file.name: file for file in files if file.path.parent == kernel.path.parent and file is not kernel}
    near = {name: file for name, file in near.items() if name.rpartition(".")[2] in suffixes and not file.is_link}
    used, waiting = dict[str, bytes](), [source]
    while waiting and len(used) <= MAX_BESIDE:  # one more is refused
        for name in _mentioned(waiting.pop()) & near.keys() - used.keys():
            used[name], _ = _text(near[name])
            waiting.append(used[name])
    return used


def _mentioned(source: bytes) -> set[str]:
    """The names of the files that a source may include or import."""
    text = source.decode()
    imports = " ".join(re.findall(r"^[ \t]*(?:from|import)\b(.*)", text, re.MULTILINE))
    includes = re.findall(r'^[ \t]*#[ \t]*include[ \t]*[<"]([^<>"\n]*)', text, re.MULTILINE)
    return {f"{word}.py" for word in re.findall(r"\w+", imports)} | {path.rpartition("/")[2] for path in includes}
