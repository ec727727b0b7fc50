"""Checks for the fields of frames: a check takes parsed JSON and returns the value, or raises `WireError`."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import field
from functools import lru_cache
from typing import Any

from harness.languages.extra_files import malformed
from harness.shared import call
from harness.shared.document import DocumentError, parse_json


class WireError(Exception):
    """A frame that violates the protocol. `str()` says what is wrong, in text that is safe to print."""


FieldCheck = Callable[[Any], Any]
Kinds = Mapping[str, FieldCheck]
"""The check of each kind of message, by name."""


def printable(text: str) -> str:
    """Make hostile text safe to store and to print: control characters and lone surrogates become visible escapes."""
    text = text.encode("utf-8", "backslashreplace").decode("utf-8")
    return text if text.isprintable() else "".join(map(_shown, text))


@lru_cache(maxsize=1024)
def _shown(character: str) -> str:
    printed = character in "\n\t" or character.isprintable()
    return character if printed else character.encode("unicode_escape").decode()


def strict_json(raw: bytes) -> Any:
    """Parse a JSON document within the bounds of `harness.shared.document`.

    Raises:
        WireError: it is not such a document. This function raises nothing else, whatever the bytes.
    """
    try:
        return parse_json(raw)
    except DocumentError as error:
        raise WireError(str(error)) from None


def text(limit: int, least: int = 0) -> FieldCheck:
    """A string of `least` to `limit` characters, made printable and cut to `limit` again, since escapes are longer."""

    def check(value: Any) -> str:
        if not isinstance(value, str) or not least <= len(value) <= limit:
            raise WireError(f"expected a text of {least} to {limit} characters")
        return printable(value)[:limit]

    return check


def line(limit: int, least: int = 0) -> FieldCheck:
    """Like `text`, but on one line: line breaks and tabs become escapes."""
    check_text = text(limit, least)

    def check(value: Any) -> str:
        return str(check_text(value)).replace("\n", "\\n").replace("\t", "\\t")[:limit]

    return check


def integer(low: int, high: int) -> FieldCheck:
    """An integer in [low, high]; true and false are not integers."""

    def check(value: Any) -> int:
        if type(value) is not int or not low <= value <= high:
            raise WireError(f"expected an integer in [{low}, {high}]")
        return value

    return check


def boolean(value: Any) -> bool:
    if type(value) is not bool:
        raise WireError("expected true or false")
    return value


def number(value: Any) -> int | float:
    if type(value) not in (int, float) or value in (math.inf, -math.inf):  # the value of JSON's 1e999
        raise WireError("expected a finite number")
    return value  # type: ignore[no-any-return]  # the type was just checked


def many(item: FieldCheck, limit: int, at_least: int = 0) -> FieldCheck:
    """A list of `at_least` to `limit` items, as a tuple."""

    def check(value: Any) -> tuple[Any, ...]:
        if not isinstance(value, list) or not at_least <= len(value) <= limit:
            raise WireError(f"expected a list of {at_least} to {limit} items")
        return tuple(item(v) for v in value)

    return check


def ascending(high: int, limit: int) -> FieldCheck:
    """At most `limit` integers in [0, high], each greater than the one before it, as a tuple."""
    check_integers = many(integer(0, high), limit)

    def check(value: Any) -> tuple[int, ...]:
        numbers: tuple[int, ...] = check_integers(value)
        if any(low >= high for low, high in itertools.pairwise(numbers)):
            raise WireError("expected integers in ascending order")
        return numbers

    return check


def choice(*options: str) -> FieldCheck:
    def check(value: Any) -> str:
        if value not in options or not isinstance(value, str):
            raise WireError(f"expected one of {', '.join(options)}")
        return value

    return check


def extra_file(value: Any) -> str:
    """The name of a header or a Python module that a submission may include or import."""
    if why := malformed(value):
        raise WireError(f"a file's name {why}")
    return str(value)


def form(value: Any) -> call.Form:
    """A form of `harness.shared.call`."""
    try:
        call.check(value)
    except call.FormError as error:
        raise WireError(f"expected a form, where {printable(str(error))[:200]}") from None
    return value


def forms(value: Any) -> call.Forms:
    """The forms of a call."""
    if not isinstance(value, dict) or value.keys() != {"init", "arguments", "result"}:
        raise WireError("expected the forms of a call")
    listed = many(form, call.MAX_BYTES)
    return call.Forms(listed(value["init"]), listed(value["arguments"]), form(value["result"]))


def record(cls: type[Any]) -> FieldCheck:
    """An object with exactly the fields of a message class."""
    fields = {f.name: f.metadata["check"] for f in dataclasses.fields(cls)}

    def check(value: Any) -> Any:
        if not isinstance(value, dict) or value.keys() != fields.keys():
            raise WireError(f"expected the fields {sorted(fields)}")
        return cls(**{name: verify(value[name]) for name, verify in fields.items()})

    return check


def checked(check: FieldCheck, **default: Any) -> Any:
    """A field of a message; with `default=` it may be omitted when the message is made."""
    return field(metadata={"check": check}, **default)


def kinds(*classes: type[Any]) -> Kinds:
    return {cls.__name__: record(cls) for cls in classes}
