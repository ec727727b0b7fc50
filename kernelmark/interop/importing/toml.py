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
    return "\n".join(_lines(document, "")) + "\n"


def _lines(table: Mapping[str, Any], path: str) -> Iterator[str]:
    inner = {key: value for key, value in table.items() if not path and _is_section(value)}
    for key, value in table.items():
        if key not in inner:
            yield from _pair(key, value)
    for key, value in inner.items():
        for each in value if isinstance(value, list) else [value]:
            yield ""
            yield f"[[{_key(key)}]]" if isinstance(value, list) else f"[{_key(key)}]"
            for name, member in each.items():
                if _is_list_of_tables(member):
                    continue
                yield from _pair(name, member)
            for name, member in each.items():
                for table_inside in member if _is_list_of_tables(member) else ():
                    yield ""
                    yield f"[[{_key(key)}.{_key(name)}]]"
                    for pair in table_inside.items():
                        yield from _pair(*pair)


def _is_section(value: Any) -> bool:
    return isinstance(value, dict) or _is_list_of_tables(value)


def _is_list_of_tables(value: Any) -> bool:
    """Whether it is stated as `[[…]]`: the tables of a form have one key, and stay in their line."""
    return isinstance(value, list) and bool(value) and all(isinstance(each, dict) and len(each) > 1 for each in value)


def _pair(key: str, value: Any) -> Iterator[str]:
    line = f"{_key(key)} = {_value(value)}"
    if len(line) <= _WIDTH or not isinstance(value, list):
        yield line
        return
    yield f"{_key(key)} = ["
    for each in value:
        yield f"    {_value(each)},"
    yield "]"


def _value(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            return repr(value)
        case str():
            return _text(value)
        case list():
            return f"[{', '.join(map(_value, value))}]"
        case dict():
            pairs = ", ".join(f"{_key(key)} = {_value(each)}" for key, each in value.items())
            return f"{{ {pairs} }}" if pairs else "{}"
    raise TypeError(f"{type(value).__name__} in a document")


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _text(key)


def _text(text: str) -> str:
    """A basic string. JSON's escapes are TOML's, but JSON leaves DEL as it is; a lone surrogate is in neither."""
    whole = text.encode("utf-8", "replace").decode()
    return json.dumps(whole, ensure_ascii=False).replace("\x7f", "\\u007F")
