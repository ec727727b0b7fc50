"""Reads a `task.yml` of gpu-mode, which is untrusted: plain values only, within bounds. Trusted code."""

from __future__ import annotations

from typing import Any

import yaml

from kernelmark.interop.importing.checkout import NotImportedError

_BYTES = 1 << 20
_EVENTS = 50_000
_DEPTH = 20


def parse(raw: bytes) -> dict[str, Any]:
    """The document as plain values.

    Raises:
        NotImportedError: it is too large or too deep, has tags or aliases, or is not a table.
    """
    if len(raw) > _BYTES:
        raise NotImportedError(f"its task.yml is larger than {_BYTES >> 20} MiB")
    try:
        text = raw.decode("utf-8")
        _refuse_what_is_not_plain(text)
        document = yaml.safe_load(text)
    except UnicodeDecodeError:
        raise NotImportedError("its task.yml is not UTF-8 text") from None
    except (yaml.YAMLError, ValueError, OverflowError) as error:  # ValueError: a number of 5,000 digits, a wrong date
        where = f" at line {mark.line + 1}" if (mark := getattr(error, "problem_mark", None)) else ""
        why = getattr(error, "problem", None) or type(error).__name__
        raise NotImportedError(f"its task.yml is not YAML{where} ({why})") from None
    if not isinstance(document, dict):
        raise NotImportedError("its task.yml is not a table")
    return document


def _refuse_what_is_not_plain(text: str) -> None:
    """Events come one by one and nothing is made of them, so that a bomb is refused before it goes off."""
    depth = 0
    for number, event in enumerate(yaml.parse(text, Loader=yaml.SafeLoader)):
        if number > _EVENTS:
            raise NotImportedError(f"its task.yml has more than {_EVENTS:,} values")
        if isinstance(event, yaml.AliasEvent):
            raise NotImportedError("its task.yml has an alias (*), which no task needs")
        if isinstance(event, yaml.NodeEvent) and getattr(event, "tag", None) is not None:
            raise NotImportedError("its task.yml has a tag (!), which no task needs")
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > _DEPTH:
            raise NotImportedError(f"its task.yml is nested more than {_DEPTH} deep")
