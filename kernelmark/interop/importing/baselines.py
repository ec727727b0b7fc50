"""Writes the baselines of an imported problem: its own reference, plain and compiled, as submissions to it. Trusted.

They hold untrusted code, which is parsed here and, like every baseline, run only in a sandbox.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from harness.errors import UsageError
from harness.files import outside
from harness.problem import Problem
from harness.submission import Submission
from kernelmark.authoring.start import pytorch

_NAMES = {"eager": False, "compiled": True}
_FIRST = "# `kernelmark import` wrote this file, and replaces it unless it was changed: sha256 "


def write(problem: Problem, folder: Path) -> str:
    """Write `eager.py` and `compiled.py` into a folder, without replacing a file that someone else wrote or changed.

    Returns why there are none, in one line; empty if they were written.
    """
    try:
        for name, compiles in _NAMES.items():
            path = folder / f"{name}.py"
            if not _replaceable(path):
                continue
            rest = pytorch.baseline(problem, compiles=compiles).encode()
            content = f"{_FIRST}{hashlib.sha256(rest).hexdigest()}\n".encode() + rest
            Submission.of(content, "py", author="baseline", name=path.name)
            folder.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
    except UsageError as error:  # the problem has no baselines any more
        for path in (folder / f"{name}.py" for name in _NAMES):
            if path.is_file() and _replaceable(path):
                path.unlink()
        return error.what
    except OSError as error:
        return f"{folder} cannot be written ({error.strerror})"
    return ""


def _replaceable(path: Path) -> bool:
    """Whether nothing is there, or exactly what `write` wrote."""
    try:
        first, _, rest = outside.read(path, outside.TEXT_BYTES).partition(b"\n")
    except FileNotFoundError:
        return not path.is_symlink()
    except OSError:
        return False
    return first == f"{_FIRST}{hashlib.sha256(rest).hexdigest()}".encode()
