"""Shared by the templates of first submissions: names, lines of code, and how a submission is called. Trusted."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from harness.errors import UsageError
from harness.problem import Problem
from harness.problem.signature import forms
from harness.shared.call import Form, places, written


def argument_names(problem: Problem) -> list[str]:
    """The tensors, then the scalars."""
    return [*(tensor.name for tensor in problem.tensors), *(scalar.name for scalar in problem.scalars)]


def free(name: str, taken: Collection[str]) -> str:
    """The name, with as many `_` appended as are needed to differ from the taken ones."""
    while name in taken:
        name += "_"
    return name


def refuse_taken(problem: Problem, reserved: Collection[str], why: str) -> None:
    """Refuse names of a problem that the file needs for something else.

    Raises:
        UsageError: the problem uses one of them.
    """
    used = [problem.entry, *argument_names(problem), *problem.parameters]
    if clash := next((name for name in used if name in reserved), None):
        raise UsageError(problem.slug, f"uses the name `{clash}`, which is also {why}", "write this file by hand")


@dataclass(frozen=True)
class Calling:
    """How a submission is called, for `templates/start/entry.jinja`."""

    arguments: list[str]
    """The names of the arguments of the function, or of `forward`."""
    unpacking: list[str]
    """The lines that take tensors and scalars out of arguments that contain several."""
    known: frozenset[str]
    """The tensors, scalars and parameters that are variables in the body."""
    result: str = ""
    """The expression to return, in Python; empty if nothing is returned."""
    init: list[str] = field(default_factory=list)
    """The names of the arguments of a class."""
    init_unpacking: Sequence[str] = ()
    kept: Sequence[str] = ()
    """The values that a class stores for `forward`."""


def calling(problem: Problem) -> Calling:
    """How a submission to this problem is called."""
    if problem.call.style == "writes":
        arguments = argument_names(problem)
        return Calling(arguments, [], frozenset(arguments))
    call, taken = forms(problem), {*argument_names(problem), *problem.parameters}
    arguments, unpacking = _arguments(call.arguments, "data" if problem.call.style == "tree" else "argument", taken)
    init, init_unpacking = _arguments(call.init, "option", taken)
    known = [name for form in call.arguments for name, _ in places(form, "")]
    of_init = dict.fromkeys(name for form in call.init for name, _ in places(form, ""))
    result = written(_only_tensors(call.result, {tensor.name for tensor in problem.tensors}))
    return Calling(
        arguments,
        unpacking,
        frozenset({*known, *of_init}),
        "" if result == "None" else result,
        init,
        init_unpacking,
        [name for name in of_init if name not in known],
    )


def _arguments(described: Sequence[Form], other: str, taken: Collection[str]) -> tuple[list[str], list[str]]:
    """The names of arguments, and the lines that unpack their values."""
    arguments: list[str] = []
    lines: list[str] = []
    for number, form in enumerate(described):
        contents = list(places(form, ""))
        if len(contents) == 1 and contents[0][1] == "" and contents[0][0] not in arguments:
            arguments.append(contents[0][0])
            continue
        arguments.append(free(other if other == "data" else f"{other}{number}", taken))
        inner = form.get("tuple") if isinstance(form, dict) else form
        if isinstance(inner, list) and inner and all(isinstance(name, str) for name in inner):
            target = ", ".join(inner) if len(inner) > 1 else f"({inner[0]},)"
            lines.append(f"{target} = {arguments[-1]}")
        else:
            lines += [f"{name} = {place}" for name, place in places(form, arguments[-1])]
    return arguments, lines


def _only_tensors(form: Form, tensors: Collection[str]) -> Form:
    """The form with None in place of everything that is not a tensor."""
    match form:
        case str() if form in tensors:
            return form
        case list():
            return [_only_tensors(part, tensors) for part in form]
        case {"tuple": parts}:
            return {"tuple": [_only_tensors(part, tensors) for part in parts]}
        case {"dict": parts}:
            return {"dict": {key: _only_tensors(part, tensors) for key, part in parts.items()}}
        case {"fields": parts}:
            return {"fields": {key: _only_tensors(part, tensors) for key, part in parts.items()}}
    return {"none": True}
