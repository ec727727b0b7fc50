"""Checks what the importer answers, which a stranger's code may have written: only values within bounds. Trusted.

Descriptions have the form that `harness.importer.values` gives.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harness.wire.checks import WireError, printable, strict_json
from kernelmark.interop.importing.found import NotImportedError

MAX_BYTES = 8 << 20
_DEPTH = 16
_VALUES = 20_000
_DIMENSIONS = 64
_NUMBER = 1e300  # beyond every float that a problem would state, and NaN is not between


@dataclass(frozen=True)
class Tensor:
    """One tensor in one case; the same one, in data and result, has one number."""

    number: int
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    count: int | None = None
    """How many there are, of a folded entry of a dict."""


@dataclass(frozen=True)
class Node:
    """A value: its kind, and what it holds.

    `inside` is a `Tensor`, a number, a text, a list of nodes (list, tuple) or a table of nodes (dict, fields).
    """

    kind: str
    inside: Any


@dataclass(frozen=True)
class CaseAnswer:
    """The data and the result of a case."""

    data: Node
    result: Node


@dataclass(frozen=True)
class Answer:
    """All that was found out about a problem."""

    cases: tuple[CaseAnswer, ...]
    names: tuple[str, ...]
    """What the code calls the members of the data."""
    init: tuple[Node, ...]
    arguments: tuple[str, ...]
    """The parameters of `generate_input`."""
    filled: Mapping[int, str]
    """For tensors of the data that may be room for the result: "yes", "no", or why nobody knows."""
    fixed: bool
    """Whether two seeds were seen to give the same inputs."""
    seed_bits: int
    """How many bits the seeds of `generate_input` may have; 0 if only small ones will do, or nobody knows."""
    weight_bytes: int
    host_bytes: int
    """The most host memory that the process held which found this out."""


def check(raw: bytes, cases: int) -> Answer:
    """The answer about a problem with so many cases.

    Raises:
        NotImportedError: the problem was refused, or the answer is not one.
    """
    try:
        document = _table(strict_json(raw), 20)
        if "refused" in document:
            raise NotImportedError(line(_text(document["refused"], 500)))
        budget = _Budget()
        answers = _list(document.get("cases"), cases)
        if len(answers) != cases:
            raise WireError("another number of cases")
        return Answer(
            cases=tuple(
                CaseAnswer(*(budget.node(_table(each, 2).get(key), 0) for key in ("data", "result")))
                for each in answers
            ),
            names=tuple(_text(each, 1000) for each in _list(document.get("names", []), 1000)),
            init=tuple(budget.node(each, 0) for each in _list(document.get("init", []), 1000)),
            arguments=tuple(_text(each, 1000) for each in _list(document.get("arguments", []), 1000)),
            filled={
                int(key): line(_text(why, 500))
                for key, why in _table(document.get("filled", {}), 1000).items()
                if key.isdecimal() and len(key) < 6
            },
            fixed=document.get("fixed") is True,
            seed_bits=min(_whole(document.get("seed_bits", 0)), 62),
            weight_bytes=_whole(document.get("weight_bytes", 0)),
            host_bytes=_whole(document.get("host_bytes", 0)),
        )
    except WireError as error:
        raise NotImportedError(f"what came out of the sandbox is not an answer ({error})") from None


def line(text: str) -> str:
    """Hostile text as one line."""
    return " ".join(printable(text).split())[:300]


class _Budget:
    """Counts values."""

    def __init__(self) -> None:
        self._left = _VALUES * 100

    def node(self, value: Any, depth: int) -> Node:
        self._left -= 1
        if self._left < 0 or depth > _DEPTH:
            raise WireError("too many values, or too deep")
        [(kind, inside)] = _table(value, 1).items() or [("", None)]
        match kind:
            case "tensor":
                return Node(kind, _tensor(inside))
            case "number" if isinstance(inside, bool | int | float) and -_NUMBER < inside < _NUMBER:
                return Node(kind, inside)
            case "text" | "dtype" | "other":
                return Node(kind, _text(inside, 1000))
            case "none":
                return Node(kind, True)
            case "list" | "tuple":
                return Node(kind, [self.node(each, depth + 1) for each in _list(inside, _VALUES)])
            case "dict" | "fields":
                members = _table(inside, _VALUES).items()
                return Node(kind, {_text(key, 200): self.node(each, depth + 1) for key, each in members})
        raise WireError("an unknown kind of value")


def _tensor(value: Any) -> Tensor:
    told = _table(value, 5)
    shape, strides = (tuple(_whole(each) for each in _list(told.get(key), _DIMENSIONS)) for key in ("shape", "strides"))
    if len(shape) != len(strides):
        raise WireError("a tensor with as many strides as it has no dimensions")
    count = _whole(told["count"]) if "count" in told else None
    return Tensor(_whole(told.get("id")), _text(told.get("dtype"), 40), shape, strides, count)


def _table(value: Any, limit: int) -> dict[str, Any]:
    if not isinstance(value, dict) or len(value) > limit:
        raise WireError("expected a table")
    return value


def _list(value: Any, limit: int) -> list[Any]:
    if not isinstance(value, list) or len(value) > limit:
        raise WireError("expected a list")
    return value


def _text(value: Any, limit: int) -> str:
    if not isinstance(value, str) or len(value) > limit:
        raise WireError(f"expected a text of at most {limit} characters")
    return value


def _whole(value: Any) -> int:
    if type(value) is not int or not 0 <= value < 1 << 50:
        raise WireError("expected a whole number")
    return value
