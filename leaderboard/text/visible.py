"""Makes untrusted text visible: invisible characters are written as their codes.

The terminal and the site use it for all such text. Trusted code over hostile text; standard library only, so errors can
be printed when nothing else can be imported.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping

_INVISIBLE = {"Cc", "Cf", "Cs", "Zl", "Zp"}  # controls, formats (bidirectional overrides), lone surrogates, separators


def visible(text: str) -> str:
    """One line of untrusted text with every control, format and line-breaking character written as an escape."""
    if text.isprintable():
        return text
    return "".join(escaped(c) if unicodedata.category(c) in _INVISIBLE else c for c in text)


def parameters(params: Mapping[str, int | str]) -> str:
    """A case's parameters in one line: `rows=4 cols=4096`."""
    return visible(" ".join(f"{name}={value}" for name, value in params.items()))


def shortened(text: str, letters: int, tail: int) -> str:
    """One visible line of text; a long one keeps its beginning and its last `tail` characters, `letters` in all."""
    shown = visible(text)
    if len(shown) <= letters:
        return shown
    return f"{shown[: letters - 1 - tail].rstrip()}…{shown[-tail:].lstrip()}"


def escaped(character: str) -> str:
    """A character's code as Python writes it: `\\x1b`, `\\u202e`."""
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
