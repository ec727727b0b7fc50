"""The Python function or class that a problem asks for: its first lines, and what it returns."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from harness.errors import UsageError
from harness.problem import Problem
from harness.problem.signature import forms
from harness.shared.call import Form, places, written


@dataclass(frozen=True)
class Calling:
    """How a submission is called: its lines around a body, and the variables that the body can use."""

    head: tuple[str, ...]
    """Up to the first line of the body, unpacking included; each with its indentation."""
    indent: str
    known: frozenset[str]
    """The tensors, scalars and parameters that are variables in the body."""
    result: str
    """What to return, as Python; empty if nothing."""


def calling(problem: Problem) -> Calling:
    """How a submission to this problem is called."""
    tensors, scalars = [each.name for each in problem.tensors], [each.name for each in problem.scalars]
    if problem.call.style == "writes":
        given = [*tensors, *scalars]
        return Calling((f"def {problem.entry}({', '.join(given)}):",), "    ", frozenset(given), "")
    of = forms(problem)
    taken = {*tensors, *scalars, *problem.parameters}
    arguments, unpacking = _arguments(of.arguments, "data" if problem.call.style == "tree" else "argument", taken)
    known = {name for form in of.arguments for name, _ in places(form, "")}
    if problem.call.style == "module":
        made, settling = _arguments(of.init, "option", taken)
        settled = dict.fromkeys(name for form in of.init for name, _ in places(form, ""))
        used = [name for name in settled if name not in known]
        head = [
            f"class {problem.entry}(torch.nn.Module):",
            f"    def __init__({', '.join(['self', *made])}):",
            "        super().__init__()",
            *(f"        {line}" for line in settling),
            *(f"        self.{name} = {name}" for name in used),
            "",
            f"    def forward({', '.join(['self', *arguments])}):",
            *(f"        {name} = self.{name}" for name in used),
        ]
        known |= set(settled)
    else:
        head = [f"def {problem.entry}({', '.join(arguments)}):"]
    indent = "        " if problem.call.style == "module" else "    "
    result = written(_only_tensors(of.result, set(tensors)))
    return Calling(
        (*head, *(f"{indent}{line}" for line in unpacking)),
        indent,
        frozenset(known),
        "" if result == "None" else result,
    )


def arguments_of(problem: Problem) -> list[str]:
    """The tensors, then the scalars."""
    return [*(each.name for each in problem.tensors), *(each.name for each in problem.scalars)]


def free(name: str, taken: Collection[str]) -> str:
    """The name, with as many `_` behind it as make it differ from those that are taken."""
    while name in taken:
        name += "_"
    return name


def refuse_taken(problem: Problem, own: Collection[str], why: str) -> None:
    """Refuse names of a problem that the file needs for something else.

    Raises:
        UsageError: the problem uses one of them.
    """
    used = [problem.entry, *arguments_of(problem), *problem.parameters]
    if clash := next((name for name in used if name in own), None):
        raise UsageError(problem.slug, f"uses the name `{clash}`, which is also {why}", "write this file by hand")


def _arguments(given: Sequence[Form], other: str, taken: Collection[str]) -> tuple[list[str], list[str]]:
    """The names of arguments, and the lines that take out what their values are made up of."""
    arguments: list[str] = []
    lines: list[str] = []
    for number, form in enumerate(given):
        [*several] = places(form, "")
        if len(several) == 1 and several[0][1] == "" and several[0][0] not in arguments:
            arguments.append(several[0][0])
            continue
        arguments.append(free(other if other == "data" else f"{other}{number}", taken))
        inner = form.get("tuple") if isinstance(form, dict) else form
        if isinstance(inner, list) and inner and all(isinstance(each, str) for each in inner):
            target = ", ".join(inner) if len(inner) > 1 else f"({inner[0]},)"
            lines.append(f"{target} = {arguments[-1]}")
        else:
            lines += [f"{name} = {place}" for name, place in places(form, arguments[-1])]
    return arguments, lines


def _only_tensors(form: Form, tensors: Collection[str]) -> Form:
    """The form with None for everything that no one looks at."""
    if isinstance(form, str):
        return form if form in tensors else {"none": True}
    if isinstance(form, list):
        return [_only_tensors(each, tensors) for each in form]
    if isinstance(form, dict):
        [(kind, inner)] = form.items()
        if kind == "tuple":
            return {kind: [_only_tensors(each, tensors) for each in inner]}
        if kind in ("dict", "fields"):
            return {kind: {key: _only_tensors(each, tensors) for key, each in inner.items()}}
    return {"none": True}
