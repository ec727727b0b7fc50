"""Errors about a problem's files: each names the file, the key, and a remedy; trusted, no torch.

`checks` and `resolve` raise them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import NoReturn, TypeVar

from harness.errors import ProblemError
from harness.problem.expression import ExpressionError, evaluate, parse
from harness.problem.spec import Case, ProblemSpec

N = TypeVar("N", int, float)


class Flaws:
    """Raises one-line errors about a problem's file, at a key path."""

    def __init__(self, file: str) -> None:
        self._file = file

    def at(self, key: str, what: str, remedy: str = "") -> NoReturn:
        raise ProblemError(self._file, f"key `{key}` {what}", remedy)

    def value(self, key: str, text: int | str, parameters: Mapping[str, int | str]) -> int:
        """The value of the expression at `key`, a whole number."""
        return self._value(key, parameters, lambda: evaluate(text, parameters))

    def real(self, key: str, text: str, parameters: Mapping[str, int | str]) -> float:
        """The value of the expression at `key`, which may be a fraction."""
        return self._value(key, parameters, lambda: parse(text, real=True).real(parameters))

    def _value(self, key: str, parameters: Mapping[str, int | str], compute: Callable[[], N]) -> N:
        try:
            return compute()
        except ExpressionError as error:
            names = [name for name in parameters if isinstance(parameters[name], int) and name.isidentifier()]
            self.at(key, f"has no value: {error}", f"parameters that hold a number: {', '.join(names) or 'none'}")


def flaws_of(problem: ProblemSpec, case: Case) -> Flaws:
    """Errors about the file that holds a case."""
    return Flaws(str(next((file for file, _, cases in _files(problem) if _has(cases, case)), _public(problem))))


def case_key(problem: ProblemSpec, case: Case) -> str:
    """A case's position in its file: `tests[2]`."""
    for _, kind, cases in _files(problem):
        if _has(cases, case):
            return f"{kind}[{next(number for number, other in enumerate(cases) if other is case)}]"
    return f"case {case.name!r}"


def _files(problem: ProblemSpec) -> Iterator[tuple[Path, str, tuple[Case, ...]]]:
    """The lists of cases, each with its file and the name of its key there."""
    private, final = problem.private_tests, problem.final_tests
    if problem.private is not None:
        yield problem.private.final_file, "tests", final
        yield problem.private.file, "tests", private[: len(private) - len(final)]
    yield _public(problem), "tests", problem.tests[: len(problem.tests) - len(private)]
    yield _public(problem), "benchmarks", problem.benchmarks


def _public(problem: ProblemSpec) -> Path:
    return problem.directory / "problem.toml"


def _has(cases: Iterable[Case], case: Case) -> bool:
    """Whether it is one of them: itself, not one like it."""
    return any(each is case for each in cases)
