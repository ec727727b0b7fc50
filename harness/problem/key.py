"""A key of a problem's file, as `checks` and `resolve` pass it on: it evaluates what the key holds, or refuses it.

Trusted; no torch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NoReturn, TypeVar

from harness.errors import ProblemError
from harness.problem.expression import ExpressionError, evaluate, parse
from harness.problem.spec import Case, ProblemSpec

N = TypeVar("N", int, float)


@dataclass(frozen=True)
class ProblemKey:
    """A key, such as `tensors[0].shape`, in a file; if a case is being resolved, also that case and its parameters."""

    file: Path
    path: str = ""
    case: str = ""
    """The position of the case, such as `tests[2]`."""
    parameters: Mapping[str, int | str] = field(default_factory=dict)

    def at(self, *steps: str | int) -> ProblemKey:
        """The key below this one: `at("shape", 1)` of `tensors[0]` is `tensors[0].shape[1]`."""
        below = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)
        return replace(self, path=f"{self.path}{below}".removeprefix("."))

    def given(self, parameters: Mapping[str, int | str]) -> ProblemKey:
        """The same key with these parameters besides its own."""
        return replace(self, parameters={**self.parameters, **parameters})

    def refuse(self, what: str, remedy: str = "") -> NoReturn:
        """Raise the ProblemError that says what is wrong with the key."""
        raise ProblemError(str(self.file), f"key `{self.path}` {what}", remedy)

    def value(self, text: int | str) -> int:
        """The value of the expression that the key holds, a whole number.

        Raises:
            ProblemError: it has none for these parameters.
        """
        return self._computed(lambda: evaluate(text, self.parameters))

    def real(self, text: str) -> float:
        """The same for an expression whose value may be a fraction."""
        return self._computed(lambda: parse(text, real=True).real(self.parameters))

    def _computed(self, compute: Callable[[], N]) -> N:
        try:
            return compute()
        except ExpressionError as error:
            names = [name for name, held in self.parameters.items() if isinstance(held, int) and name.isidentifier()]
            self.refuse(f"has no value: {error}", f"parameters that hold a number: {', '.join(names) or 'none'}")


def file_key(problem: ProblemSpec) -> ProblemKey:
    """The whole of `problem.toml`."""
    return ProblemKey(problem.directory / "problem.toml")


def case_key(problem: ProblemSpec, case: Case) -> ProblemKey:
    """Where one of the problem's own cases is: the file that holds it, and its position there."""
    public, private, final = file_key(problem).file, problem.private_tests, problem.final_tests
    lists = [("tests", public, problem.tests[: len(problem.tests) - len(private)])]
    lists += [("benchmarks", public, problem.benchmarks)]
    if problem.private is not None:
        lists += [("tests", problem.private.file, private[: len(private) - len(final)])]
        lists += [("tests", problem.private.final_file, final)]
    for kind, file, cases in lists:
        for number, own in enumerate(cases):
            if own is case:  # itself, not one like it
                return ProblemKey(file, f"{kind}[{number}]")
    return ProblemKey(public, f"case {case.name!r}")
