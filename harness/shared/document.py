"""Reads JSON and TOML that others wrote: settings, problems, messages, profiles. Trusted; the text is not.

The values are nested at most `DEPTH` deep, so that recursive code does not run out of stack, and the numbers of JSON
are finite and short enough for arithmetic. Verdicts and other documents that pydantic parses are not read here:
pydantic has such bounds of its own.

Standard library only: the runner's sandbox contains this file.
"""

from __future__ import annotations

import json
import math
import re
import tomllib
from typing import Any

DEPTH = 100
DIGITS = 20  # of an integer: all of 64 bits have fewer


class DocumentError(ValueError):
    """The text is not a document of that kind; `str()` says why, and `line` where, if that is known."""

    def __init__(self, what: str, line: int | None = None) -> None:
        super().__init__(what)
        self.line = line


def parse_json(raw: bytes | str) -> Any:
    """A JSON document without constants that are not JSON (NaN) and without duplicate fields.

    Raises:
        DocumentError: it is not such a document, or exceeds a bound. No other exception leaves this function, whatever
            the bytes.
    """
    try:
        text = raw if isinstance(raw, str) else raw.decode("utf-8")
        found = json.loads(
            text,
            parse_constant=_refuse_constant,
            parse_int=_integer,
            parse_float=_number,
            object_pairs_hook=_refuse_duplicates,
        )
    except UnicodeDecodeError:
        raise DocumentError("not JSON (it is not UTF-8 text)") from None
    except RecursionError:
        raise DocumentError(_DEEP_JSON) from None
    except json.JSONDecodeError as error:
        raise DocumentError(f"not JSON ({error.msg} at column {error.colno})", error.lineno) from None
    if text.count("{") + text.count("[") > DEPTH and _is_deep(found):  # most have fewer, and need no second look
        raise DocumentError(_DEEP_JSON)
    return found


def parse_toml(raw: bytes) -> dict[str, Any]:
    """A TOML document, with line ends of any kind.

    Raises:
        DocumentError: it is not such a document, or exceeds a bound. No other exception leaves this function, whatever
            the bytes.
    """
    try:
        found = tomllib.loads(raw.decode("utf-8").replace("\r\n", "\n"))
    except UnicodeDecodeError as error:
        raise DocumentError("is not UTF-8 text", raw[: error.start].count(b"\n") + 1) from None
    except tomllib.TOMLDecodeError as error:
        # tomllib ends its message with "(at line 3, column 7)" or "(at end of document)".
        position = re.search(r"at line (\d+)", str(error))
        raise DocumentError(f"is not TOML: {error}", int(position[1]) if position else None) from None
    except RecursionError:
        raise DocumentError(_DEEP_TOML) from None
    except ValueError:  # an integer of 5,000 digits
        raise DocumentError("is not TOML: a number has too many digits") from None
    if _is_deep(found):
        raise DocumentError(_DEEP_TOML)
    return found


_DEEP_JSON = f"nested more than {DEPTH} deep"
_DEEP_TOML = "is not TOML: values are nested too deeply"


def _is_deep(document: Any) -> bool:
    level, depth = [document] if isinstance(document, dict | list) else [], 1
    while level and depth <= DEPTH:
        members = (value.values() if isinstance(value, dict) else value for value in level)
        level = [inner for values in members for inner in values if isinstance(inner, dict | list)]
        depth += 1
    return bool(level)


def _refuse_constant(name: str) -> Any:
    raise DocumentError(f"{name} is not a number of JSON")


def _integer(digits: str) -> int:
    if len(digits) > DIGITS:
        raise DocumentError(f"a number of more than {DIGITS} digits")
    return int(digits)


def _number(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise DocumentError(f"{digits[:DIGITS]} is not a finite number")
    return value


def _refuse_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise DocumentError("a field stands twice")
    return fields
