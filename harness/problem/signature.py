"""How Python submissions of a problem are called: as forms for the runner, as text for people. Trusted, no torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from harness.problem.spec import ProblemFile
from harness.shared.call import Form, Forms, names, settled, written


def forms(problem: ProblemFile) -> Forms:
    """The forms of a call, the default ones included; none in the style `writes`."""
    call = problem.call
    if call.style == "writes":
        return Forms()
    given = [spec.name for spec in problem.tensors if spec.role != "output"]
    arguments = call.arguments or (*given, *(spec.name for spec in problem.scalars))
    if call.style == "tree":
        arguments = (call.data,)
    return Forms(call.init, arguments, default_result(problem) if call.result is None else call.result)


def settled_forms(problem: ProblemFile, params: Mapping[str, int | float | str], values: Mapping[str, Form]) -> Forms:
    """The forms of a call in one case: what names a parameter, or something in `values`, has its value."""
    of = forms(problem)

    def each(several: Sequence[Form]) -> tuple[Form, ...]:
        return tuple(settled(form, params, values) for form in several)

    return Forms(each(of.init), each(of.arguments), settled(of.result, params, values))


def signature(problem: ProblemFile) -> str:
    """The definition of a Python submission: `softmax(x, y)`, `softmax(x) -> y`, or for a class `Model(n)(x) -> y`."""
    if problem.call.style == "writes":
        given = [*(spec.name for spec in problem.tensors), *(spec.name for spec in problem.scalars)]
        return f"{problem.entry}({', '.join(given)})"
    of = forms(problem)
    made = f"({', '.join(map(written, of.init))})" if problem.call.style == "module" else ""
    return f"{problem.entry}{made}({', '.join(map(written, of.arguments))}) -> {written(of.result)}"


def unreachable_outputs(problem: ProblemFile) -> list[str]:
    """The outputs that a call in the problem's style neither returns nor is given."""
    if problem.call.style == "writes":
        return []
    of = forms(problem)
    reached = {name for form in (*of.arguments, of.result) for name in names(form)}
    return [spec.name for spec in problem.tensors if spec.role != "input" and spec.name not in reached]


def default_result(problem: ProblemFile) -> Form:
    """The outputs in order: one as it is, several as a tuple; nothing if all are inouts."""
    outputs: list[Form] = [spec.name for spec in problem.tensors if spec.role == "output"]
    if not outputs:
        return {"none": True}
    return outputs[0] if len(outputs) == 1 else {"tuple": outputs}
