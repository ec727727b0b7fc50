"""A first submission in PyTorch: the problem's definition, whose results go where the problem wants them. Trusted."""

from __future__ import annotations

from typing import Any

from harness.errors import UsageError
from harness.files import outside
from harness.problem import Problem
from harness.problem.dtypes import DTYPES
from harness.problem.spec import TensorSpec
from harness.shared.foreign import FORMS
from kernelmark.authoring.rendering import render
from kernelmark.authoring.start.calling import Calling, calling
from kernelmark.authoring.start.definition import Definition, cut
from kernelmark.authoring.start.source import argument_names, free, refuse_taken


def source(problem: Problem) -> str:
    """The text of the file.

    Raises:
        UsageError: the definition cannot be part of a submission.
    """
    return _source(problem, "the definition, which is right and slow. Replace it piece by piece.", compiles=False)


def baseline(problem: Problem, *, compiles: bool) -> str:
    """The text of a kernel that is a foreign problem's own reference, as it is or through `torch.compile`.

    Raises:
        UsageError: as for `source`.
    """
    assert problem.foreign is not None
    what = "as `torch.compile` makes it" if compiles else "as it is"
    return _source(problem, f"the problem's own reference, {what}.", compiles=compiles)


def _source(problem: Problem, what: str, *, compiles: bool) -> str:
    name = FORMS[problem.foreign.form].entry if problem.foreign else "reference"
    definition, how = _definition(problem, name), calling(problem)
    refuse_taken(problem, {*definition.names, name}, "one of its definition")
    return render(
        "start/torch.jinja",
        problem=problem,
        what=what,
        compiles=compiles,
        foreign=problem.foreign is not None,
        name=name,
        compiled=free("compiled", {*definition.names, name, problem.entry}),
        definition=definition,
        annotations="from __future__ import annotations",
        calling=how,
        **({} if problem.foreign else _results(problem, definition, how)),
    )


def _definition(problem: Problem, name: str) -> Definition:
    """What the reference needs of its file."""
    file = problem.directory / (problem.foreign.files[0].path if problem.foreign else "reference.py")
    try:
        text = outside.text(file)
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", "") or "it is not UTF-8 text"
        raise UsageError(str(file), f"cannot be read ({why})") from None
    definition = cut(text, name, str(file))
    files = problem.foreign.files if problem.foreign else ()
    hidden = {foreign.name.removesuffix(".py") for foreign in files if not foreign.shown}
    if lacking := definition.modules & hidden:
        what = f"needs {min(lacking)}.py, which submissions cannot import"
        raise UsageError(str(file), what, "use --lang triton")
    return definition


def _results(problem: Problem, definition: Definition, how: Calling) -> dict[str, Any]:
    """How the body calls the definition, and what it does with its results."""
    constants = [(scalar.name, scalar.value) for scalar in problem.scalars if scalar.name not in how.known]
    if drawn := [name for name, value in constants if isinstance(value, str)]:
        what = f"does not hand its submissions `{drawn[0]}`, which the definition needs"
        raise UsageError(problem.slug, what, "write this file by hand")
    names = {tensor.name for tensor in problem.tensors if tensor.role == "output"}
    given = [name for name in argument_names(problem) if name not in names]
    same_order = definition.parameters == tuple(given)
    return {
        "constants": [(name, repr(value)) for name, value in constants],
        "reference": f"reference({', '.join(name if same_order else f'{name}={name}' for name in given)})",
        "results": free("results", {*argument_names(problem), *definition.names}),
        "outputs": [tensor for tensor in problem.tensors if tensor.role != "input"],
        "cast": lambda output: _cast(problem, how, output),
    }


def _cast(problem: Problem, how: Calling, output: TensorSpec) -> str:
    """To the dtype of the output, which the definition of a float may leave to the harness."""
    if output.dtype in DTYPES:
        return f".to(torch.{output.dtype})" if DTYPES[output.dtype].family in ("float", "complex") else ""
    same = (tensor for tensor in problem.tensors if tensor.dtype == output.dtype and tensor.name in how.known)
    like = next(same, None)
    return f".to({like.name}{'[0]' if like.count is not None else ''}.dtype)" if like is not None else ""
