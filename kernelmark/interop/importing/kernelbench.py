"""Finds the problems of a checkout of KernelBench. Trusted."""

from __future__ import annotations

import re
from pathlib import Path

from kernelmark.interop.importing.checkout import Candidate, ForeignFile, ForeignProblem, read_file, slug_of, walked

_LEVEL = re.compile(r"level(\d+)")
_FILE = re.compile(r"(\d+)_(.+)\.py")


def candidates(root: Path) -> list[Candidate]:
    """Every problem of every level, in order; `root` is the checkout, or the folder with the levels."""
    found: dict[tuple[int, int, str], Candidate] = {}
    homes = (root, root / "KernelBench")
    for folder, folders, files in walked(root):
        folders[:] = [name for name in folders if folder in homes and (name == "KernelBench" or _LEVEL.fullmatch(name))]
        level = _LEVEL.fullmatch(folder.name) if folder.parent in homes else None
        for file in files if level else ():
            if level and (parts := _FILE.fullmatch(file)):
                number, words = int(parts[1]), parts[2].strip("_")
                name = f"{int(level[1])}/{number}"
                title = f"{words.replace('_', ' ')} (KernelBench {name})"
                slug = slug_of("kernelbench", level[1], parts[1], words)
                candidate = Candidate("kernelbench", name, f"{name} {words}", slug, title, folder / file)
                found[int(level[1]), number, str(candidate.file)] = candidate
    return [found[key] for key in sorted(found)]


def read(root: Path, candidate: Candidate) -> ForeignProblem:
    """The problem; its sizes are in its code.

    Raises:
        NotImportedError: its file cannot be read.
    """
    path, content = read_file(root, candidate.file, candidate.file.name)
    file = ForeignFile("reference.py", path, content, shown=False)
    return ForeignProblem(candidate, (file,))
