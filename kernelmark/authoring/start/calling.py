"""The Python function or class that a problem asks for: its arguments, and what it returns."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from harness.problem import Problem
from harness.problem.signature import forms
from harness.shared.call import Form, places, written
from kernelmark.authoring.start.source import argument_names, free


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
    """What to return, as Python; empty if nothing."""
    init: list[str] = field(default_factory=list)
    """The names of the arguments of a class."""
    init_unpacking: Sequence[str] = ()
    kept: Sequence[str] = ()
    """What a class keeps of them for `forward`."""


def calling(problem: Problem) -> Calling:
    """How a submission to this problem is called."""
    if problem.call.style == "writes":
        given = argument_names(problem)
        return Calling(given, [], frozenset(given))
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


def _arguments(given: Sequence[Form], other: str, taken: Collection[str]) -> tuple[list[str], list[str]]:
    """The names of arguments, and the lines that take out what their values are made up of."""
    arguments: list[str] = []
    lines: list[str] = []
    for number, form in enumerate(given):
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
    """The form with None for everything that no one looks at."""
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
