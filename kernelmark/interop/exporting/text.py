"""Puts the parts of an exported file together, with the imports that the generated ones need. Trusted."""

from __future__ import annotations

import ast
from collections.abc import Sequence

_IMPORTS = {
    "functools.": "import functools",
    "math.": "import math",
    "SimpleNamespace(": "from types import SimpleNamespace",
    "torch.": "import torch",
}
"""By what the generated text has if it needs them."""


def assembled(header: str, parts: Sequence[str]) -> str:
    """The file: a header, the source as it is, the imports, and what was generated."""
    first, *generated = parts
    added = "".join(generated)
    there = {ast.unparse(node) for node in ast.parse(first).body}
    needed = [line for used, line in _IMPORTS.items() if used in added and line not in there]
    imports = "\n\n" + "\n".join([*needed, ""]) if needed else ""
    return header + first.rstrip("\n") + "\n" + imports + added
