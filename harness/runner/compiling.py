"""Compiles a submission inside the sandbox, and packs the results of a build. Imports no torch; untrusted."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

from harness.languages import LANGUAGES
from harness.languages.language import Compiler
from harness.wire import commands

_COMPILES_CUDA = (b"cpp_extension", b"nvcc")
_LOG_LIMIT = 8_000
_MAX_BYTES = 24 << 20  # of packed files; the archive is a little larger


class CompileError(Exception):
    """The compiler refused the source, or an entry point is missing, which is the submission's fault."""

    def __init__(self, message: str, log: str = "") -> None:
        super().__init__(message)
        self.message, self.log = message, log


class NoCompiler(Exception):
    """The sandbox lacks the compiler of a language, which is not the submission's fault."""


def source_path(language: str = "py") -> Path:
    """The path of the submission's source in the sandbox."""
    return Path.home() / f"submission.{language}"


def library_path() -> Path:
    """The path of the compiled library, for the languages that have one."""
    return Path.home() / "submission.so"


def add_extra_file(name: str, content: bytes) -> None:
    """Put a file into the submission's folder, where it can be included or imported."""
    (Path.home() / name).write_bytes(content)
    if str(Path.home()) not in sys.path:
        sys.path.insert(0, str(Path.home()))


def put_source(command: commands.Build, source: int) -> None:
    """Copy the source from a descriptor to its place."""
    source_path(command.language).write_bytes(content_of(source))


def content_of(descriptor: int) -> bytes:
    """The whole content of a file."""
    with os.fdopen(os.dup(descriptor), "rb") as file:
        file.seek(0)
        return file.read()


def compiles_cuda(language: str) -> bool:
    """Whether a submission is compiled, or seems to compile CUDA C++.

    If not, its calls need not be on a thread's default stream, and other threads can use their stream.
    """
    if LANGUAGES[language].compiler is not None:
        return True
    files = Path.home().glob("*.py")
    return any(mark in content for content in map(Path.read_bytes, files) for mark in _COMPILES_CUDA)


def compile_for_thread_stream() -> None:
    """From now on let nvcc use the thread's default stream for launches that name no stream.

    These launches are then ordered with the runner's calls and can be recorded. The legacy default stream cannot be
    captured.
    """
    flags = (os.environ.get("NVCC_APPEND_FLAGS", ""), "--default-stream=per-thread")
    os.environ["NVCC_APPEND_FLAGS"] = " ".join(flags).strip()


def packed() -> bytes:
    """An archive of all files in HOME; empty if they are too large.

    It stores times in whole seconds, so that ninja finds no file newer than its targets.
    """
    content, used = io.BytesIO(), 0
    for path in Path.home().rglob("*"):
        if (used := used + path.lstat().st_size) > _MAX_BYTES:
            return b""
    with tarfile.open(fileobj=content, mode="w", format=tarfile.GNU_FORMAT) as archive:
        archive.add(Path.home(), "", filter=lambda entry: entry if entry.isreg() or entry.isdir() else None)
    return content.getvalue()


def unpack(descriptor: int) -> None:
    """Unpack an archive of `packed` into HOME."""
    with tarfile.open(fileobj=io.BytesIO(content_of(descriptor))) as archive:
        archive.extraction_filter = lambda member, _: member  # the submission itself made the archive
        archive.extractall(Path.home())


def compile_source(command: commands.Build, compiler: Compiler) -> tuple[Path, str]:
    """Compile the source, unless the library is there already (`unpack`); returns the library and the log.

    Raises:
        CompileError: the compiler refused the source.
        NoCompiler: the compiler is missing.
    """
    library, output = library_path(), Path.home() / "build.log"
    if library.exists():
        return library, _head_and_tail(output)
    unit = source_path(command.language)
    if compiler.unit is not None:
        unit = Path.home() / f"unit.{command.language}"
        unit.write_text(compiler.unit)
    program = shutil.which(compiler.program)
    if program is None:
        lacking = f"this sandbox has no {compiler.program}, the compiler for .{command.language} files"
        if LANGUAGES[command.language].devices == ("cuda",) and os.environ.get("KERNELMARK_DEVICE") != "cuda":
            raise NoCompiler(f"{lacking}, and there is no GPU here: grade it on a GPU, or install {compiler.program}")
        if os.environ.get("KERNELMARK_DEVICE") != "cuda":
            raise NoCompiler(f"{lacking}; install it, or use another sandbox")
        raise CompileError(lacking)
    names = {"architecture": command.architecture, "virtual": command.architecture.replace("sm_", "compute_")}
    arguments = [argument.format(**names) for argument in compiler.arguments]
    arguments += compiler.line_info if command.line_info else ()
    line = [program, *arguments, "-o", str(library), unit.name]
    # The output goes to a file, whose size the tmpfs limits: with a pipe, a compiler that prints a lot would block.
    with output.open("wb") as file:
        status = subprocess.call(line, cwd=unit.parent, stdout=file, stderr=subprocess.STDOUT)
    log = _head_and_tail(output)
    if status != 0:
        lines = [text for text in log.splitlines() if "error" in text] or log.splitlines() or ["no output"]
        raise CompileError(f"{lines[0]} ({compiler.program} exited with {status})", log)
    return library, log


def _head_and_tail(path: Path) -> str:
    with path.open("rb") as file:
        head = file.read(_LOG_LIMIT)
        if path.stat().st_size > _LOG_LIMIT:
            file.seek(-_LOG_LIMIT // 2, os.SEEK_END)
            head = head[: _LOG_LIMIT // 2 - 10] + b"\n[...]\n" + file.read()
    return head.decode("utf-8", "replace")[:_LOG_LIMIT]
