"""The types of single keys of `problem.toml`: names, numbers, expressions and dates. Trusted; imports no torch."""

from __future__ import annotations

import keyword
import re
from datetime import datetime
from typing import Annotated

from pydantic import AfterValidator, AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field, ValidationInfo

from harness.kinds import DeviceKind
from harness.problem.dtypes import DTYPES
from harness.problem.expression import FUNCTIONS, parse

_C_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
# C++ keywords that are not also Python keywords.
_CPP_KEYWORDS = frozenset(
    """
    alignas alignof asm auto bool case catch char char8_t char16_t char32_t compl concept const consteval constexpr
    constinit const_cast co_await co_return co_yield decltype default delete do double dynamic_cast enum explicit
    export extern false float friend goto inline int long mutable namespace new noexcept nullptr operator private
    protected public register reinterpret_cast requires short signed sizeof static static_assert static_cast struct
    switch template this thread_local throw true typedef typeid typename union unsigned using virtual void volatile
    wchar_t xor and_eq bitand bitor not_eq or_eq xor_eq restrict
    """.split()  # noqa: SIM905 - a list literal would be one word a line
)


def _name(text: str) -> str:
    """Check a name: Python, C and C++ must accept it, and it must have no other meaning in an expression."""
    if not _C_NAME.fullmatch(text) or len(text) > 64:
        raise ValueError(f"{text!r} is not a valid name: use a letter, then up to 63 letters, digits and '_'")
    if keyword.iskeyword(text) or text in _CPP_KEYWORDS:
        raise ValueError(f"{text!r} is a keyword of Python or C++: choose another name")
    if text in DTYPES or text in FUNCTIONS or text == "index":
        raise ValueError(f"{text!r} has a meaning in expressions: choose another name")
    return text


def _option(text: str) -> str:
    """Check the name of an option, which only Python must accept."""
    if not _C_NAME.fullmatch(text) or len(text) > 64 or keyword.iskeyword(text):
        raise ValueError(f"{text!r} is not a valid name: use a letter, then up to 63 letters, digits and '_'")
    return text


def _expression(value: int | str) -> int | str:
    if isinstance(value, str):
        parse(value)
    return value


def _case_name(text: str) -> str:
    if not re.fullmatch(r"[^\s\x00-\x1f\x7f](?:[^\x00-\x1f\x7f]{0,62}[^\s\x00-\x1f\x7f])?", text):
        raise ValueError("a case's name is one line of 1 to 64 characters, with no space at its ends")
    return text


def _title(text: str) -> str:
    if re.search(r"[\x00-\x1f\x7f]", text):
        raise ValueError("a title is one line of text")
    return text


def _tag(text: str) -> str:
    if not re.fullmatch(r"[a-z0-9]+(?:[ -][a-z0-9]+)*", text) or len(text) > 24:
        raise ValueError(f"{text!r} is not a valid tag: use up to 24 lower-case letters, digits, '-' and spaces")
    return text


def _distinct(devices: tuple[DeviceKind, ...]) -> tuple[DeviceKind, ...]:
    if len(set(devices)) != len(devices):
        raise ValueError("a device is named twice")
    return devices


def _moment(value: object, info: ValidationInfo) -> object:
    """Check a date and time. In TOML it must be a date-time, since pydantic would also accept seconds since 1970."""
    if info.mode == "json":
        return value
    if isinstance(value, str):
        raise ValueError("a date and time is written without quotation marks: 2027-01-31T23:59:00Z")
    if not isinstance(value, datetime):
        raise ValueError("a date and time with its offset is needed: 2027-01-31T23:59:00Z")
    if value.tzinfo is None:
        raise ValueError("should have timezone info: 2027-01-31T23:59:00Z, or +01:00 in place of Z")
    return value


Name = Annotated[str, AfterValidator(_name)]
Option = Annotated[str, AfterValidator(_option)]
CaseName = Annotated[str, AfterValidator(_case_name)]
Title = Annotated[str, AfterValidator(_title)]
Tag = Annotated[str, AfterValidator(_tag)]
Whole = Annotated[int, Field(strict=True, ge=-(2**63), le=2**63 - 1)]
Real = Annotated[float, Field(strict=True)]
Seconds = Annotated[Real, Field(gt=0, le=1e9)]  # a socket's timeout and a frame's milliseconds hold little more
Flag = Annotated[bool, Field(strict=True)]
SizeExpression = Annotated[Whole | str, AfterValidator(_expression)]
DeviceKinds = Annotated[tuple[DeviceKind, ...], AfterValidator(_distinct)]
Deadline = Annotated[AwareDatetime, BeforeValidator(_moment)]
Bound = Whole | Real | str


class Spec(BaseModel):
    """A part of a problem: immutable, without unknown keys and non-finite numbers."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
