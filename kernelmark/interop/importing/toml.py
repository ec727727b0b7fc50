"""Writes tables as TOML, in the order and the form that problem.toml has elsewhere. Trusted."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_WIDTH = 120


def written(document: Mapping[str, Any]) -> str:
    """The text of a document: plain values first, then tables, then lists of tables."""
    return "\n".join(_lines(document)) + "\n"


def _lines(table: Mapping[str, Any], path: str = "") -> Iterator[str]:
    """The lines of a table; only the document itself may hold tables that are not lists."""
    sections = {key: value for key, value in table.items() if _are_tables(value) or (not path and type(value) is dict)}
    for key, value in table.items():
        if key not in sections:
            yield from _pair(key, value)
    for key, value in sections.items():
        header = f"{path}{_key(key)}"
        for member in value if isinstance(value, list) else [value]:
            yield from ("", f"[[{header}]]" if isinstance(value, list) else f"[{header}]")
            yield from _lines(member, f"{header}.")


def _are_tables(value: Any) -> bool:
    """Whether it is stated as `[[…]]`: the tables of a form have one key, and stay in their line."""
    return (
        isinstance(value, list) and bool(value) and all(isinstance(table, dict) and len(table) > 1 for table in value)
    )


def _pair(key: str, value: Any) -> Iterator[str]:
    line = f"{_key(key)} = {_value(value)}"
    if len(line) <= _WIDTH or not isinstance(value, list):
        yield line
    else:
        yield from (f"{_key(key)} = [", *(f"    {_value(member)}," for member in value), "]")


def _value(value: Any) -> str:
    """A value in one line; JSON writes numbers and flags as TOML does."""
    match value:
        case str():
            return _text(value)
        case list():
            return f"[{', '.join(map(_value, value))}]"
        case dict():
            pairs = ", ".join(f"{_key(key)} = {_value(member)}" for key, member in value.items())
            return f"{{ {pairs} }}" if pairs else "{}"
    return json.dumps(value, allow_nan=False)


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _text(key)


def _text(text: str) -> str:
    """A basic string. JSON's escapes are TOML's, but JSON leaves DEL as it is; a lone surrogate is in neither."""
    whole = text.encode("utf-8", "replace").decode()
    return json.dumps(whole, ensure_ascii=False).replace("\x7f", "\\u007F")
