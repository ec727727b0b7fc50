"""Makes a project from the files that ship with kernelmark: `kernelmark init`. Trusted; does not import torch.

All files are known and checked before the first is written. A new folder is filled under a temporary name and then
renamed; in an existing folder, no file is replaced.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.errors import UsageError, nearest
from harness.files.outside import real
from kernelmark import __version__
from kernelmark.authoring.rendering import render
from kernelmark.project.problems import shipped
from kernelmark.project.settings import FILE_NAME

DEFAULT = ("vector_add", "softmax")
_LEFT_OUT = {"__pycache__", "leaderboard"}  # running an example makes these
_WHEEL = f"kernelmark-{__version__}-py3-none-any.whl"
_TOOLS = ("tools/annotate", "tools/runner-environment", "tools/take-recorded")
_WORKFLOWS = (".github/workflows/grade.yml", ".github/workflows/problems.yml")
_INSTALL = re.compile(r"pip install --quiet -c constraints.txt -e \S+")
_UPDATES, _NOT_HERE = ".github/dependabot.yml", "  - package-ecosystem: pip\n"


@dataclass(frozen=True)
class File:
    """The content of a file of the new project."""

    content: bytes
    executable: bool = False


Files = Mapping[str, File]
"""The files of a project, by their paths in it."""


def competition(slugs: Sequence[str]) -> Files:
    """A project with these problems.

    Raises:
        UsageError: no such problem ships; the message names the nearest.
    """
    source = shipped()
    texts = {name: (source / name).read_text("utf-8") for name in (*_WORKFLOWS, _UPDATES)}
    texts = {name: _INSTALL.sub("pip install --quiet -r requirements.txt", text) for name, text in texts.items()}
    texts[_UPDATES] = texts[_UPDATES].partition(_NOT_HERE)[0]  # of Python packages and images it has none
    return {
        **{
            name: _read(source / name)
            for name in ("problems/problem.schema.json", FILE_NAME, ".gitattributes", *_TOOLS)
        },
        **added(slugs),
        **{name: File(text.encode()) for name, text in texts.items()},
        ".github/pull_request_template.md": _read(source / ".github/PULL_REQUEST_TEMPLATE/submission.md"),
        ".gitignore": _rendered("gitignore"),
        "requirements.txt": _rendered("requirements.txt", wheel=_WHEEL),
        "README.md": _rendered("README.md", slug=slugs[0]),
    }


def added(slugs: Sequence[str]) -> Files:
    """Only the files of these problems and of their reference kernels.

    Raises:
        UsageError: no such problem ships; the message names the nearest.
    """
    source = shipped()
    known = sorted(file.parent.name for file in (source / "problems").glob("*/problem.toml"))
    for slug in slugs:
        if slug not in known:
            raise UsageError(f"--problem {slug:.80}", "no such problem comes with kernelmark", nearest(slug, known))
    folders = [Path(kind, slug) for slug in slugs for kind in ("problems", "reference")]
    return {str(name): file for folder in folders for name, file in _below(source, folder)}


def course() -> Files:
    """The course of `examples/course`: an assignment with a deadline, and submissions."""
    folder = shipped() / "examples/course"
    return {str(name): file for name, file in _below(folder, Path())}


def write(folder: Path, files: Files) -> None:
    """Write a project, whole or not at all.

    Raises:
        UsageError: one of the files is there already, or the folder cannot be written.
    """
    try:
        folder = real(folder)
        if os.path.lexists(folder):
            _refuse_existing(folder, files)
            _fill(folder, files)
            return
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}-") as made:
            whole = Path(made, folder.name)
            whole.mkdir()
            _fill(whole, files)
            whole.rename(folder)
    except OSError as error:
        raise UsageError(str(folder), f"no project can be written there ({error.strerror})", "name another") from error


def _refuse_existing(folder: Path, files: Files) -> None:
    if not folder.is_dir():
        raise UsageError(str(folder), "is not a folder", "name another, or remove it")
    for name in files:
        for path in (folder / name, *(folder / above for above in Path(name).parents)):
            if os.path.lexists(path) and not (path != folder / name and path.is_dir()):
                project = (folder / FILE_NAME).exists()
                remedy = "--problem adds what a project lacks" if project else "name an empty folder, or a new one"
                raise UsageError(str(path), "exists already", remedy)


def _fill(folder: Path, files: Files) -> None:
    """Write files that do not exist; if that fails, none of them."""
    written: list[Path] = []
    try:
        for name, file in files.items():
            path = folder / name
            for missing in reversed([parent for parent in path.parents if not parent.exists()]):
                missing.mkdir()
                written.append(missing)
            with path.open("xb") as target:
                written.append(path)
                target.write(file.content)
            if file.executable:
                path.chmod(path.stat().st_mode | 0o111)
    except BaseException:
        for path in reversed(written):
            path.rmdir() if path.is_dir() else path.unlink()
        raise


def _below(root: Path, folder: Path) -> Iterator[tuple[Path, File]]:
    """Every file in a folder of the root, with its path from the root."""
    for path in sorted((root / folder).rglob("*")):
        name = path.relative_to(root)
        if path.is_file() and not _LEFT_OUT & set(name.parts):
            yield name, _read(path)


def _read(path: Path) -> File:
    return File(path.read_bytes(), executable=os.access(path, os.X_OK))


def _rendered(name: str, **context: str) -> File:
    return File(render(f"project/{name}.jinja", **context).encode())
