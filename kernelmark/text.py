"""Text for terminals: untrusted text made visible, rows aligned.

Everything in the front door that prints comes through here. Trusted code over hostile text. Standard library only, so
that an error can be told when nothing else can be imported.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence

INDENT = "  "
_INVISIBLE = {"Cc", "Cf", "Cs", "Zl", "Zp"}  # controls, formats (bidirectional overrides), lone surrogates, separators


def visible(text: str) -> str:
    """One line of untrusted text with every control, format and line-breaking character written as an escape."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_escaped(c) if unicodedata.category(c) in _INVISIBLE else c for c in text)


def block(text: str) -> Iterator[str]:
    """Several lines of untrusted text (a log, a traceback), indented; only newlines and tabs keep their meaning."""
    for line in text.rstrip("\n").split("\n"):
        yield INDENT * 2 + visible(line.removesuffix("\r").expandtabs(4))


def columns(
    rows: Sequence[Sequence[str]], *, right: frozenset[int] = frozenset(), indent: str = INDENT
) -> Iterator[str]:
    """Rows of cells as aligned lines; the columns in `right` are flushed right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (c.rjust(w) if i in right else c.ljust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True)))
        yield (indent + "  ".join(cells)).rstrip()


def _escaped(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
