"""Whether what a command prints for programs follows its schema in docs/schemas."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

ROOT = Path(__file__).resolve().parents[1]


def valid(printed: str) -> Any:
    """The only document in a text; it follows its schema, and has no field besides, and no path of this machine."""
    document = json.loads(printed)
    faults = [error.message for error in _validator(document["$schema"]).iter_errors(document)]
    assert faults == []
    home, here = f'"{Path.home()}', f'"{Path.cwd()}'
    assert (home in printed, here in printed) == (False, False)
    return document


def items(printed: str) -> list[Any]:
    """The items of a document that has several."""
    found: list[Any] = valid(printed)["items"]
    return found


def fields(printed: str) -> dict[str, Any]:
    """A document without its schema and version, as its model takes it."""
    return {key: value for key, value in valid(printed).items() if key not in ("$schema", "version")}


@cache
def _validator(file: str) -> Draft202012Validator:
    return Draft202012Validator(_closed(json.loads((ROOT / file).read_text(encoding="utf-8"))))


def _closed(node: Any) -> Any:
    """A schema that allows no field but those that it has."""
    if isinstance(node, list):
        return [_closed(value) for value in node]
    if not isinstance(node, dict):
        return node
    only = {"additionalProperties": False} if isinstance(node.get("properties"), dict) else {}
    return only | {key: _closed(value) for key, value in node.items()}
