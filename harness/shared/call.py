"""Describes as data how a Python function is called: the values of its arguments and of its result.

A form is plain data that TOML and JSON can represent. `problem.toml` contains it, the protocol sends it, and the runner
makes the arguments of a call from it. Judge and runner use this module, which imports neither torch nor pydantic.

    "x"                             the tensor, the list of tensors or the scalar of that name
    3, 0.5, true                    the number itself
    ["x", "y"]                      a list
    { tuple = ["x", "y"] }          a tuple
    { dict = { w = "x" } }          a dict
    { dict = { "w{index}" = "x" } } a dict with an entry for each member of the list x of tensors: w0, w1, ...
    { fields = { w = "x" } }        an object with these attributes
    { param = "n" }                 the value of a parameter, which differs between cases
    { text = "mean" }, { none = true }, { dtype = "float16" }
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import astuple, dataclass, field
from itertools import groupby
from types import SimpleNamespace
from typing import Any, Literal, get_args

Form = Any
"""A form as above: str, int, float, bool, list, or dict with one key."""
Style = Literal["writes", "returns", "module", "tree"]
STYLES = get_args(Style)
MAX_BYTES = 32 * 1024  # for the forms of a call, which are sent in one frame
MAX_ABSENT = 128  # absent tensors of a call, which are listed in the same frame
INDEX = "{index}"
"""In a key of a dict, it represents the index of a member of the list that the key's value names."""
_DEPTH = 16
_VALUES = 10_000
_WHOLE = 1 << 63


class FormError(ValueError):
    """A form is not valid, or a value does not have its form; the text says where."""


@dataclass(frozen=True)
class Forms:
    """The forms of one call of a function or class; none in the style `writes`."""

    init: tuple[Form, ...] = ()
    arguments: tuple[Form, ...] = ()
    result: Form = field(default_factory=lambda: {"none": True})

    def nbytes(self) -> int:
        """The size of all forms as JSON."""
        return len(json.dumps(astuple(self), ensure_ascii=False).encode())


def names(form: Form) -> Iterator[str]:
    """The names of tensors, lists and scalars that occur in a form, in order."""
    return (value for kind, value in _leaves(form) if kind == "name")


def parameters(form: Form) -> Iterator[str]:
    """The parameters whose values occur in a form, in order."""
    return (value for kind, value in _leaves(form) if kind == "param")


def numbered(form: Form) -> Iterator[tuple[str, str]]:
    """The keys of dicts that contain `{index}`, with the names of their lists, in order."""
    return ((value[0], value[1]) for kind, value in _leaves(form) if kind == "numbered")


def check(form: Form) -> None:
    """Check a form.

    Raises:
        FormError: it is not valid; the message names the place.
    """
    for number, (kind, value) in enumerate(_leaves(form)):
        if number == _VALUES:
            raise FormError(f"has more than {_VALUES:,} values")
        if kind == "numbered":
            key, _, table, place = value
            others = {_with_index(other, 0): other for other in table if other != key}
            for entry in _matching_keys(others, key):
                raise FormError(f"{place} and the key {others[entry]!r} both name the entry {entry!r}")


def settled(form: Form, params: Mapping[str, int | float | str], values: Mapping[str, Form] = {}) -> Form:
    """The form with parameters, and names that have a value in a case, replaced by their values."""
    kind, value = _kind(form)
    match kind:
        case "name":
            return values.get(value, value)
        case "param":
            chosen = params[value]
            return {"dtype": chosen} if isinstance(chosen, str) else chosen
        case "list":
            return [settled(member, params, values) for member in value]
        case "tuple":
            return {kind: [settled(member, params, values) for member in value]}
        case "dict" | "fields":
            return {kind: {key: settled(member, params, values) for key, member in value.items()}}
    return form


def made(form: Form, named: Mapping[str, Any], dtype: Callable[[str], Any]) -> Any:
    """The Python value of a settled form; `dtype` gives the object for a dtype's name."""
    kind, value = _kind(form)
    match kind:
        case "name":
            return named[value]
        case "list":
            return [made(member, named, dtype) for member in value]
        case "tuple":
            return tuple(made(member, named, dtype) for member in value)
        case "dict":
            return dict(_entries(value, named, dtype))
        case "fields":
            return SimpleNamespace(**{key: made(member, named, dtype) for key, member in value.items()})
        case "dtype":
            return dtype(value)
        case "number" | "text":
            return value
    return None


def written(form: Form) -> str:
    """The form as Python code, such as `(x, {'w': w}, 3)`, with parameters as names."""
    kind, value = _kind(form)
    match kind:
        case "list":
            return f"[{', '.join(map(written, value))}]"
        case "tuple":
            return f"({', '.join(map(written, value))}{',' * (len(value) == 1)})"
        case "dict":
            return "{" + ", ".join(_written_entry(key, member) for key, member in value.items()) + "}"
        case "fields":
            return f"SimpleNamespace({', '.join(f'{key}={written(member)}' for key, member in value.items())})"
        case "name" | "param":
            return str(value)
        case "dtype":
            return f"torch.{value}"
        case "number" | "text":
            return repr(value)
    return "None"


def places(form: Form, at: str) -> Iterator[tuple[str, str]]:
    """The names and parameters in a form, and the Python expressions that take them from a value `at` of that form."""
    kind, inner = _kind(form)
    if kind in ("name", "param"):
        yield inner, at
    elif kind in ("list", "tuple"):
        for number, member in enumerate(inner):
            yield from places(member, f"{at}[{number}]")
    elif kind in ("dict", "fields"):
        for key, member in inner.items():
            field = f"{at}.{key}" if key.isidentifier() else f"getattr({at}, {key!r})"
            yield from places(member, field if kind == "fields" else _subscript(key, at))


def parts(value: Any, form: Form, place: str = "the result") -> dict[str, Any]:
    """Take the values of a form's names from a value of that form. Members without a name are ignored.

    Raises:
        FormError: the value does not have the form.
    """
    kind, inner = _kind(form)
    found: dict[str, Any] = {}
    if kind == "name":
        found[inner] = value
    elif kind in ("list", "tuple"):
        if not isinstance(value, list | tuple) or len(value) != len(inner):
            got = f"{len(value)} values" if isinstance(value, list | tuple) else type(value).__name__
            raise FormError(f"{place} should be a {kind} of {len(inner)}, and is {got}")
        for number, (part, member) in enumerate(zip(inner, value, strict=True)):
            found |= parts(member, part, f"{place}[{number}]")
    elif isinstance(inner, dict):
        for key, part in inner.items():
            if kind == "dict" and INDEX in key:
                found[part] = _members(value, key, place)
                continue
            try:
                member = value[key] if kind == "dict" else getattr(value, key)
            except (KeyError, TypeError, AttributeError):
                raise FormError(f"{place} lacks {key!r}") from None
            found |= parts(member, part, f"{place}[{key!r}]")
    return found


def _entries(
    table: Mapping[str, Form], named: Mapping[str, Any], dtype: Callable[[str], Any]
) -> Iterator[tuple[str, Any]]:
    """The entries of a dict. Adjacent keys with `{index}` are expanded member by member, as a loop would make them."""
    for of_lists, group in groupby(table.items(), lambda entry: INDEX in entry[0]):
        if not of_lists:
            yield from ((key, made(member, named, dtype)) for key, member in group)
            continue
        lists = [(key, named[name]) for key, name in group]
        for index in range(max(len(members) for _, members in lists)):
            yield from ((_with_index(key, index), members[index]) for key, members in lists if index < len(members))


def _members(value: Any, key: str, place: str) -> list[Any]:
    """The values of all keys of a dict that a key with `{index}` represents, in order."""
    keys = [entry for entry in value if isinstance(entry, str)] if isinstance(value, dict) else []
    wanted = [_with_index(key, index) for index in range(max(len(_matching_keys(keys, key)), 1))]
    if missing := next((entry for entry in wanted if entry not in keys), None):
        raise FormError(f"{place} lacks {missing!r}")
    return [value[entry] for entry in wanted]


def _subscript(key: str, at: str) -> str:
    """The Python expression for the value of a key in the dict `at`; a list if the key has `{index}`."""
    if INDEX not in key:
        return f"{at}[{key!r}]"
    return f"[{at}[{_f_string(key)}] for index in range(len({at})) if {_f_string(key)} in {at}]"


def _matching_keys(keys: Iterable[str], numbered_key: str) -> list[str]:
    """The keys that match a key with `{index}` for some index."""
    before, *after = map(re.escape, numbered_key.split(INDEX))
    pattern = re.compile(f"{before}(?P<index>0|[1-9][0-9]*){'(?P=index)'.join(after)}")
    return [key for key in keys if pattern.fullmatch(key)]


def _with_index(key: str, index: int) -> str:
    return key.replace(INDEX, str(index))


def _f_string(key: str) -> str:
    """The key as an f-string over `index`."""
    fixed = (part.replace("{", "{{").replace("}", "}}") for part in key.split(INDEX))
    return f"f{INDEX.join(fixed)!r}"


def _written_entry(key: str, form: Form) -> str:
    if INDEX not in key:
        return f"{key!r}: {written(form)}"
    return f"**{{{_f_string(key)}: each for index, each in enumerate({form})}}"


def _kind(form: Form) -> tuple[str, Any]:
    """The kind of a form, and its content; for a table, its only key and the value."""
    if isinstance(form, dict):
        [(kind, value)] = form.items()
        return kind, value
    return "name" if isinstance(form, str) else "list" if isinstance(form, list) else "number", form


def _leaves(form: Form, place: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    if depth > _DEPTH:
        raise FormError(f"{place} is nested more than {_DEPTH} deep")
    if isinstance(form, str):
        yield "name", form
    elif isinstance(form, bool | int | float):
        if isinstance(form, int) and not -_WHOLE <= form < _WHOLE:
            raise FormError(f"{place or 'it'} is a whole number of more than 64 bits")
        if isinstance(form, float) and not math.isfinite(form):
            raise FormError(f"{place or 'it'} is not finite")
        yield "number", form
    elif isinstance(form, list):
        for number, member in enumerate(form):
            yield from _leaves(member, f"{place}[{number}]", depth + 1)
    elif isinstance(form, dict) and len(form) == 1:
        kind, value = _kind(form)
        if kind == "tuple" and isinstance(value, list):
            yield from _leaves(value, f"{place}.tuple", depth + 1)
        elif kind in ("dict", "fields") and isinstance(value, dict):
            for key, member in value.items():
                where = f"{place}.{kind}.{key}"
                if kind == "dict" and INDEX in key:
                    if not isinstance(member, str):
                        raise FormError(f"{where} is an entry for each member of a list, and must be a list's name")
                    yield "numbered", (key, member, value, where)
                yield from _leaves(member, where, depth + 1)
        elif (kind in ("text", "dtype", "param") and isinstance(value, str)) or (kind == "none" and value is True):
            yield kind, value
        else:
            raise FormError(f"{place or 'it'} has the unknown or malformed key {kind!r}")
    else:
        raise FormError(f"{place or 'it'} is neither a name, a number, a list nor a table with one key")
