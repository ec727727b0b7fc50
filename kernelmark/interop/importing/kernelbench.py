"""Finds the problems of a checkout of KernelBench. Trusted."""

from __future__ import annotations

import re
from pathlib import Path

from kernelmark.interop.importing.found import Candidate, ForeignFile, Found, content, inside, looked_through, slug_of

_LEVEL = re.compile(r"level(\d+)")
_FILE = re.compile(r"(\d+)_(.+)\.py")
# As much as its eval_from_generations.py gives to a whole evaluation: nvcc takes most of a minute for torch's headers.
_BUILD_S = 180.0


def candidates(root: Path) -> list[Candidate]:
    """Every problem of every level, in order; `root` is the checkout, or the folder with the levels."""
    found: list[tuple[int, int, Candidate]] = []
    homes = (root, root / "KernelBench")
    for folder, folders, files in looked_through(root):
        folders[:] = [each for each in folders if folder in homes and (each == "KernelBench" or _LEVEL.fullmatch(each))]
        level = _LEVEL.fullmatch(folder.name) if folder.parent in homes else None
        for file in files if level else ():
            if level and (parts := _FILE.fullmatch(file)):
                number, words = int(parts[1]), parts[2].strip("_")
                name = f"{int(level[1])}/{number}"
                label = f"{name} {words}"
                title = f"{words.replace('_', ' ')} (KernelBench {name})"
                slug = slug_of("kernelbench", level[1], parts[1], words)
                candidate = Candidate("kernelbench", name, label, slug, title, folder / file)
                found.append((int(level[1]), number, candidate))
    return [each for _, _, each in sorted(found, key=lambda each: each[:2])]


def read(root: Path, candidate: Candidate) -> Found:
    """The problem; its sizes are in its code.

    Raises:
        NotImportedError: its file cannot be read.
    """
    path = inside(root, candidate.file, candidate.file.name)
    file = ForeignFile("reference.py", path, content(path, candidate.file.name), shown=False)
    return Found(
        form="kernelbench",
        name=candidate.name,
        label=candidate.label,
        slug=candidate.slug,
        title=candidate.title[:120],
        files=(file,),
        limits={"build_s": _BUILD_S},
    )
