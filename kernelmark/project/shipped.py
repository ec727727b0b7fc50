"""Finds what kernelmark brings for new projects: problems, the organizers' kernels, examples. Trusted.

A wheel has a copy of them, which `setup.py` makes; an editable install runs in the checkout, whose files are the only
source of both.
"""

from __future__ import annotations

from pathlib import Path

from harness.errors import HarnessError

_PACKAGE = Path(__file__).resolve().parents[1]


def shipped() -> Path:
    """The folder with `problems/`, `reference/` and `examples/`.

    Raises:
        HarnessError: this copy of kernelmark has none.
    """
    checkout = _PACKAGE.parent
    for folder, mark in ((_PACKAGE / "shipped", "problems"), (checkout, "setup.py")):
        if (folder / mark).exists():
            return folder
    raise HarnessError(f"{_PACKAGE} has no problems to copy", "install kernelmark's wheel, or run it from its clone")
