"""Reports errors in a problem's file in one line that names the key. Trusted; imports no torch.

`load` calls `validated`, which translates pydantic's errors. `checks` and `resolve` use a `ProblemKey` to evaluate
expressions and to report errors.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NoReturn, TypeVar, get_args, get_type_hints

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from harness.errors import ProblemError, misplaced, nearest, said
from harness.problem.expression import ExpressionError, evaluate, parse
from harness.problem.spec import Case, ProblemSpec

N = TypeVar("N", int, float)
M = TypeVar("M", bound=BaseModel)
_KINDS = {"tuple_type": "should be a list", "dict_type": "should be a table", "model_type": "should be a table"}


@dataclass(frozen=True)
class ProblemKey:
    """A key in a file, such as `tensors[0].shape`; while a case is resolved, also that case and its parameters."""

    file: Path
    path: str = ""
    case: str = ""
    """The position of the case, such as `tests[2]`."""
    parameters: Mapping[str, int | str] = field(default_factory=dict)

    def at(self, *steps: str | int) -> ProblemKey:
        """The key below this one: for `tensors[0]`, `at("shape", 1)` is `tensors[0].shape[1]`."""
        below = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)
        return replace(self, path=f"{self.path}{below}".removeprefix("."))

    def with_parameters(self, parameters: Mapping[str, int | str]) -> ProblemKey:
        """The same key with additional parameters."""
        return replace(self, parameters={**self.parameters, **parameters})

    def refuse(self, what: str, remedy: str = "") -> NoReturn:
        """Raise a ProblemError that says what is wrong with the key."""
        raise ProblemError(str(self.file), f"key `{self.path}` {what}", remedy)

    def value(self, text: int | str) -> int:
        """The value of the key's expression, a whole number.

        Raises:
            ProblemError: it has no value for these parameters.
        """
        return self._evaluate(lambda: evaluate(text, self.parameters))

    def real(self, text: str) -> float:
        """The value of the key's expression, which may be a fraction; raises as `value`."""
        return self._evaluate(lambda: parse(text, real=True).real(self.parameters))

    def _evaluate(self, compute: Callable[[], N]) -> N:
        try:
            return compute()
        except ExpressionError as error:
            names = [name for name, held in self.parameters.items() if isinstance(held, int) and name.isidentifier()]
            self.refuse(f"has no value: {error}", f"parameters that hold a number: {', '.join(names) or 'none'}")


def file_key(problem: ProblemSpec) -> ProblemKey:
    """The key of the whole `problem.toml`."""
    return ProblemKey(problem.directory / "problem.toml")


def case_key(problem: ProblemSpec, case: Case) -> ProblemKey:
    """The key of one of the problem's own cases: its file, and its position there."""
    public, private, final = file_key(problem).file, problem.private_tests, problem.final_tests
    lists = [("tests", public, problem.tests[: len(problem.tests) - len(private)])]
    lists += [("benchmarks", public, problem.benchmarks)]
    if problem.private is not None:
        lists += [("tests", problem.private.file, private[: len(private) - len(final)])]
        lists += [("tests", problem.private.final_file, final)]
    for kind, file, cases in lists:
        for number, own in enumerate(cases):
            if own is case:  # not an equal one
                return ProblemKey(file, f"{kind}[{number}]")
    return ProblemKey(public, f"case {case.name!r}")


def validated(model: type[M], data: Mapping[str, Any], path: Path) -> M:
    """Validate a parsed file.

    Raises:
        ProblemError: describes the first key that is wrong.
    """
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise _flaw(path, data, error, model) from None


def _flaw(path: Path, data: Mapping[str, Any], error: ValidationError, whole: type[BaseModel]) -> ProblemError:
    """The first error; unknown keys come first, since a misspelt key is also missing."""
    errors = sorted(error.errors(include_url=False), key=lambda e: e["type"] != "extra_forbidden")
    loc, value = _existing(data, errors[0])
    key = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in loc).removeprefix(".")
    parent = _model(loc[:-1], whole)
    no_table = errors[0]["type"] == "model_type" and bool(parent.model_fields) and _is_extra(loc[-1], parent)
    if errors[0]["type"] == "extra_forbidden" or no_table:
        remedy = nearest(str(loc[-1]), parent.model_fields)
        if len(loc) > 1 and loc[-1] in whole.model_fields:
            remedy = misplaced(str(loc[-1]), value)
        return ProblemError(str(path), f"key `{key}` is unknown", remedy)
    if errors[0]["type"] == "missing":
        field = parent.model_fields.get(str(loc[-1]))
        return ProblemError(str(path), f"key `{key}` is missing", f"it is {field.description}" if field else "")
    # A key that may have several types gives an error for each type.
    messages = [_KINDS.get(e["type"]) or _message(e["msg"]) for e in errors if _existing(data, e)[0] == loc]
    what = said(f"key `{key}`", ", or ".join(dict.fromkeys(messages)))
    if errors[0]["type"] == "tuple_type" and isinstance(value, str):
        return ProblemError(str(path), what, f"write [{json.dumps(value, ensure_ascii=False)}]")
    quoted = isinstance(value, str) and any(f"{q}{' '.join(value.split())}{q}" in what for q in "`'")
    return ProblemError(str(path), what, "" if quoted else _shown(value))


def _existing(data: Any, error: ErrorDetails) -> tuple[tuple[int | str, ...], Any]:
    """The part of pydantic's location that exists in the file, or is a missing key, and the value there.

    pydantic appends the types that it tried to the location.
    """
    path: list[int | str] = []
    for step in error["loc"]:
        path.append(step)
        try:
            data = data[step]
        except (KeyError, IndexError, TypeError):
            return tuple(path if error["type"] == "missing" and isinstance(data, dict) else path[:-1]), data
    return tuple(path), data


def _model(loc: Sequence[int | str], whole: type[BaseModel]) -> type[BaseModel]:
    """The model of the table at `loc`."""
    for step in loc:
        if isinstance(step, str) and step in whole.model_fields:
            whole = next(_models_in(whole.model_fields[step].annotation), whole)
        elif _is_extra(step, whole):
            whole = next(_models_in(get_type_hints(whole)["__pydantic_extra__"]), whole)
    return whole


def _is_extra(step: int | str, model: type[BaseModel]) -> bool:
    """Whether a step from a model, which names all of its own keys, is to a table with a name that the file chose."""
    return model.model_config.get("extra") == "allow" and step not in model.model_fields


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    """The models in a type such as `tuple[TensorSpec, ...]`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from _models_in(inner)


def _message(text: str) -> str:
    text = text.removeprefix("Value error, ").removeprefix("Input ")
    return text[:1].lower() + text[1:] if not text.startswith("-") else text


def _shown(value: Any) -> str:
    if isinstance(value, int) and value.bit_length() > 1000:
        return "it has hundreds of digits"  # Python prints at most 4,300 digits; a hexadecimal one may have more
    return f"it is {value!r}" if isinstance(value, str) else f"it is {value}" if isinstance(value, int | float) else ""
