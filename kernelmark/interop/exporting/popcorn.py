"""Writes gpu-mode's `submission.py`: a function `custom_kernel(data)`, below the name of its leaderboard. Trusted."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

from harness.errors import UsageError, nearest
from harness.files import outside
from harness.files.outside import real
from harness.problem import Problem
from kernelmark.interop.exporting.adapter import python_of
from kernelmark.interop.exporting.request import Exported, ExportFormat, Request
from kernelmark.interop.importing.checkout import NotImportedError
from kernelmark.interop.importing.gpu_mode import parse_task

_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_BYTES = 1_000_000
_FORBIDDEN = "stream"


def write(request: Request) -> Exported:
    """The file, as kernelbot takes it.

    Raises:
        UsageError: kernelbot would refuse the submission or could not call it, or a leaderboard or GPU is unknown.
    """
    _check_words(request)
    text = python_of(request, request.problem.call.data, "_data", queue="0")
    whole = _header(request) + request.origin + text
    if len(whole.encode()) > _BYTES:
        what = f"comes to more than {_BYTES:,} bytes"
        raise UsageError(request.submission.name, what, "kernelbot takes no larger file")
    if "leaderboard" in _directives(whole):
        return Exported(whole)
    return Exported(whole, ("the file names no leaderboard: give --leaderboard, or name one when you submit it",))


FORMAT = ExportFormat("gpu-mode", "tree", write, has_boards=True)


def _check_words(request: Request) -> None:
    for number, line in enumerate(request.source.splitlines(), 1):
        if _FORBIDDEN in line.lower():
            remedy = "use the default stream alone and remove the word, from comments too"
            if request.submission.language == "cu":
                remedy += "; the last argument of the function can be a `void*`"
            what = f"kernelbot refuses each file that has the word {_FORBIDDEN!r}"
            raise UsageError(f"{request.submission.name}:{number}", what, remedy)


def _header(request: Request) -> str:
    name, gpus = _board(request.problem)
    if request.leaderboard is not None and not _WORD.fullmatch(request.leaderboard):
        raise UsageError("--leaderboard", f"{request.leaderboard!r} is not a name", "give one word")
    for gpu in request.gpus:
        if not _WORD.fullmatch(gpu) or (gpus and gpu not in gpus):
            raise UsageError("--gpu", f"{gpu!r} is not a GPU of this leaderboard", nearest(gpu, gpus))
    own = _directives(request.source)  # of C++ and CUDA, they would be inside of a text in Python
    values = {"leaderboard": request.leaderboard or name, "gpus": " ".join(request.gpus)} | own
    written = {key: value for key, value in values.items() if value and (request.compiled or key not in own)}
    return "".join(f"#!POPCORN {key} {value}\n" for key, value in written.items())


def _directives(text: str) -> dict[str, str]:
    """The directives, which kernelbot looks for in the first lines of comments."""
    comments = itertools.takewhile(lambda line: line.startswith(("#", "//")), text.splitlines())
    words = [line.split() for line in comments]
    found = [line[1:] for line in words if len(line) > 2 and line[0] in ("#!POPCORN", "//!POPCORN")]
    return {"gpus" if key.lower() == "gpu" else key.lower(): " ".join(value) for key, *value in found}


def _board(problem: Problem) -> tuple[str, tuple[str, ...]]:
    """The leaderboard of an imported problem and its GPUs, as the list of its set in the checkout has them.

    Without a list it is the name of the problem's folder.
    """
    assert problem.foreign is not None  # or it would have been refused
    folder = real(problem.directory / problem.foreign.files[0].path).parent
    for file in sorted(folder.parent.parent.glob("*.yaml")):
        listed = _listed(file)
        for entry in listed if isinstance(listed, list) else ():
            if isinstance(entry, dict) and entry.get("directory") == "/".join(folder.parts[-2:]):
                gpus = [gpu for gpu in entry.get("gpus") or () if isinstance(gpu, str) and _WORD.fullmatch(gpu)]
                if _WORD.fullmatch(name := str(entry.get("name", ""))):
                    return name, tuple(gpus)
    return (folder.name, ()) if _WORD.fullmatch(folder.name) else ("", ())


def _listed(file: Path) -> object:
    """The problems that the file of a set lists; nothing if it cannot be read."""
    try:
        return parse_task(outside.read(file, outside.TEXT_BYTES)).get("problems")
    except (OSError, NotImportedError):
        return None
