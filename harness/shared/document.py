"""Reads JSON and TOML that others wrote: settings, problems, messages, profiles. Trusted; the text is not.

Values are nested at most `DEPTH` levels deep, so that recursive code does not run out of stack, and the numbers of JSON
are finite and short enough for arithmetic. Verdicts and other documents are parsed by pydantic, which has such limits
of its own.

This uses only the standard library, since the runner's sandbox contains it.
"""

from __future__ import annotations

import json
import math
import re
import tomllib
from typing import Any

DEPTH = 100
DIGITS = 20  # of an integer, which is enough for 64 bits


class DocumentError(ValueError):
    """The text is not a valid document; `str()` says why, and `line` where, if that is known."""

    def __init__(self, what: str, line: int | None = None) -> None:
        super().__init__(what)
        self.line = line


def parse_json(raw: bytes | str) -> Any:
    """Parse a JSON document, without constants that are not JSON (NaN), and without duplicate fields.

    Raises:
        DocumentError: it is not such a document, or exceeds a limit. This function raises nothing else, whatever the
            bytes.
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
    if text.count("{") + text.count("[") > DEPTH and _is_deep(found):  # most documents have fewer brackets
        raise DocumentError(_DEEP_JSON)
    return found


def parse_toml(raw: bytes) -> dict[str, Any]:
    """Parse a TOML document with any line ends.

    Raises:
        DocumentError: it is not such a document, or exceeds a limit. This function raises nothing else, whatever the
            bytes.
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
    except ValueError:  # for example an integer of 5,000 digits
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
