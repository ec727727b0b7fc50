"""What must agree between the keys of a problem: names, devices, visibility, and every case; trusted, no torch.

`Problem` calls it at construction, so that a problem in which keys contradict each other cannot exist.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.problem.dtypes import DTYPES
from harness.problem.resolve import Flaws, resolve_case

if TYPE_CHECKING:
    from harness.problem.spec import Problem


def check(problem: Problem) -> None:
    """Check a whole problem, and resolve every case of it.

    Raises:
        ProblemError: the first contradiction, with its key.
    """
    flaws = Flaws(str(problem.directory / "problem.toml"))
    _check_names(problem, flaws)
    if all(spec.role == "input" for spec in problem.tensors):
        flaws.at("tensors", "has no output", "give a tensor the role 'output' or 'inout'")
    for number, case in enumerate(problem.benchmarks):
        if case.hidden:
            flaws.at(f"benchmarks[{number}].hidden", "is true", "only tests can be hidden: a time shows its sizes")
    if problem.visibility == "after_deadline" and problem.deadline is None:
        flaws.at("visibility", "is 'after_deadline', but there is no `deadline`", "add one, with its time zone")
    for case in problem.tests + problem.benchmarks:
        resolve_case(problem, case)
    _check_kinds(problem, flaws)
    _check_devices(problem, flaws)
    _check_used(problem, flaws)


def _check_names(problem: Problem, flaws: Flaws) -> None:
    """All arguments share one name space: they are the parameters of one C function."""
    seen: dict[str, str] = {}
    named = [(f"parameters[{n}]", name) for n, name in enumerate(problem.parameters)]
    named += [(f"tensors[{n}].name", spec.name) for n, spec in enumerate(problem.tensors)]
    named += [(f"scalars[{n}].name", spec.name) for n, spec in enumerate(problem.scalars)]
    for key, name in named:
        if name in seen:
            flaws.at(key, f"is {name!r}, as is `{seen[name]}`", "parameters, tensors and scalars have different names")
        seen[name] = key
    seen = {}
    for kind, cases in (("tests", problem.tests), ("benchmarks", problem.benchmarks)):
        for number, case in enumerate(cases):
            key = f"{kind}[{number}].name"
            if case.name in seen:
                flaws.at(key, f"is {case.name!r}, as is `{seen[case.name]}`", "cases have different names")
            seen[case.name] = key


def _check_kinds(problem: Problem, flaws: Flaws) -> None:
    """A parameter is a number in every case, or a dtype in every case: the C signature is the same for all."""
    first = problem.tests[0].params
    for kind, cases in (("tests", problem.tests), ("benchmarks", problem.benchmarks)):
        for number, case in enumerate(cases):
            for name, value in case.params.items():
                if isinstance(value, str) != isinstance(first[name], str):
                    key = f"{kind}[{number}].params.{name}"
                    flaws.at(key, f"is {value!r}, but {first[name]!r} in `tests[0]`", "be the same kind in all cases")


def _check_devices(problem: Problem, flaws: Flaws) -> None:
    """A device is graded wholly or not at all: without a test nothing is proved, without a benchmark nothing ranked."""
    tested = {device for case in problem.tests for device in case.devices}
    timed = {device for case in problem.benchmarks for device in case.devices}
    for device in sorted(timed - tested):
        flaws.at("tests", f"has no case for {device}, but `benchmarks` has", f"add a test with devices [{device!r}]")
    for device in sorted(tested - timed):
        flaws.at(
            "benchmarks", f"has no case for {device}, but `tests` has", f"add a benchmark with devices [{device!r}]"
        )


def _check_used(problem: Problem, flaws: Flaws) -> None:
    """A dtype parameter that no tensor uses would reach no kernel: neither Python nor C is passed text."""
    used = {spec.dtype for spec in problem.tensors}
    for number, name in enumerate(problem.parameters):
        value = problem.tests[0].params[name]
        if value in DTYPES and name not in used:
            flaws.at(f"parameters[{number}]", f"`{name}` is the dtype of no tensor", "remove it, or use it as a dtype")
