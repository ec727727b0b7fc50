"""Finds out how a function that is given tensors learns a problem's parameters. Trusted; no torch."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping

from harness.errors import UsageError
from harness.problem import Problem
from harness.problem.spec import TensorSpec
from kernelmark.authoring.expressions import names, solved
from kernelmark.interop.exporting.request import Request


def solutions(
    problem: Problem, tensors: Container[str], given: Mapping[str, str]
) -> dict[str, tuple[str, frozenset[str]]]:
    """Python for each parameter that follows from these tensors, and the parameters that it mentions; in order."""
    found: dict[str, tuple[str, frozenset[str]]] = {
        name: (given[name], frozenset()) for name in problem.parameters if name in given
    }
    for spec in problem.tensors:
        if spec.name in tensors and spec.dtype in problem.parameters:
            found.setdefault(spec.dtype, (f"{first(spec)}.dtype", frozenset()))
    sizes = sorted(_sizes(problem, tensors), key=lambda each: not each[0].isidentifier())  # names first
    progress = True
    while progress:
        progress = False
        for text, value in sizes:
            unknown = names(text) - set(found)
            if len(unknown) == 1 and (solution := solved(text, name := next(iter(unknown)), value)):
                found[name] = (solution, names(text) - {name})
                progress = True
    return found


def statements(request: Request, tensors: Container[str], given: Mapping[str, str], needed: set[str]) -> list[str]:
    """Assignments of the parameters that are needed, and of those that they follow from.

    Raises:
        UsageError: one follows from no tensor, and there is no case that gives it.
    """
    found = solutions(request.problem, tensors, given)
    missing = [name for name in request.problem.parameters if name in needed and name not in found]
    fixed = [f"{name} = {_of_case(request, name)}" for name in missing]
    wanted, waiting = set(), [name for name in needed if name in found]
    while waiting:
        name = waiting.pop()
        if name not in wanted:
            wanted.add(name)
            waiting += found[name][1]
    return fixed + [f"{name} = {text}" for name, (text, _) in found.items() if name in wanted]


def _of_case(request: Request, name: str) -> str:
    if request.case is None:
        what = f"the parameter `{name}` cannot be read off the shape of an input"
        first = request.problem.benchmarks[0].name
        raise UsageError(request.problem.slug, what, f"fix it as in a test or benchmark, such as --case {first!r}")
    value = request.case.params.get(name)
    if value is None:
        what = f"the case draws the parameter `{name}`, which cannot be read off the shape of an input"
        raise UsageError("--case", what, "name one that has a value for it")
    return f"torch.{value}" if isinstance(value, str) else str(value)


def _sizes(problem: Problem, tensors: Container[str]) -> Iterator[tuple[str, str]]:
    """Expressions of `problem.toml`, and the Python that has their value in a call."""
    for spec in problem.tensors:
        if spec.name not in tensors:
            continue
        if isinstance(spec.count, str):
            yield spec.count, f"len({spec.name})"
        for number, text in enumerate(spec.shape):
            if isinstance(text, str) and "index" not in names(text):
                yield text, f"{first(spec)}.shape[{number}]"


def first(spec: TensorSpec) -> str:
    """The tensor, or the first one of the list, as Python."""
    return spec.name if spec.count is None else f"{spec.name}[0]"
