"""A first submission in PyTorch: the problem's definition, whose results go where the problem wants them. Trusted."""

from __future__ import annotations

from collections.abc import Iterator

from harness.errors import UsageError
from harness.files import outside
from harness.problem import Problem
from harness.problem.dtypes import DTYPES
from harness.problem.spec import TensorSpec
from harness.shared.foreign import FORMS
from kernelmark.authoring.start.calling import Calling, calling, free, refuse_taken
from kernelmark.authoring.start.definition import Definition, cut

_LIMIT = "torch._dynamo.config.recompile_limit = 64  # the shapes are static, and every case has its own"


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
    definition = _definition(problem, name)
    refuse_taken(problem, {*definition.names, name}, "one of its definition")
    if problem.foreign is None:
        body = [*_defined(problem, definition)]
    elif problem.call.style == "module":
        body = [f"class {problem.entry}({name}):", '    """The definition itself, with the same weights."""']
        body += ["", f"    forward = torch.compile({name}.forward, dynamic=False)"] if compiles else []
    else:
        how = calling(problem)
        arguments = how.head[0].partition("(")[2].removesuffix("):")
        called = free("compiled", {*definition.names, name, problem.entry}) if compiles else name
        body = [_LIMIT, f"{called} = torch.compile({name}, dynamic=False)", "", ""] if compiles else []
        body += [how.head[0], f"    return {called}({arguments})"]
    future = (
        "from __future__ import annotations\n\n" if "from __future__ import annotations" in definition.source else ""
    )
    rest = definition.source.replace("from __future__ import annotations", "", 1).strip()
    needed = [
        each
        for each, used in (
            ("from types import SimpleNamespace", "SimpleNamespace(" in "\n".join(body)),
            ("import torch", "torch." in "\n".join(body) and "torch" not in definition.names),
        )
        if used
    ]
    imports = "\n".join(needed) + "\n\n" if needed else ""
    told = f'"""{problem.slug} in PyTorch: {what}"""\n\n'
    return f"{told}{future}{imports}{rest}\n\n\n" + "\n".join(body) + "\n"


def _definition(problem: Problem, name: str) -> Definition:
    """What the reference needs of its file."""
    file = problem.directory / (problem.foreign.files[0].path if problem.foreign else "reference.py")
    try:
        text = outside.text(file)
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", "") or "it is not UTF-8 text"
        raise UsageError(str(file), f"cannot be read ({why})") from None
    definition = cut(text, name, str(file))
    kept_back = (
        {each.name.removesuffix(".py") for each in problem.foreign.files if not each.shown} if problem.foreign else ()
    )
    if lacking := definition.modules.intersection(kept_back):
        what = f"needs {min(lacking)}.py, which submissions cannot import"
        raise UsageError(str(file), what, "use --lang triton")
    return definition


def _defined(problem: Problem, definition: Definition) -> Iterator[str]:
    """The entry: calls the definition, and puts its results into the outputs."""
    how = calling(problem)
    given = [each.name for each in problem.tensors if each.role != "output"]
    given += [each.name for each in problem.scalars]
    yield from how.head
    for scalar in problem.scalars:
        if scalar.name not in how.known:
            if isinstance(scalar.value, str):
                what = f"does not hand its submissions `{scalar.name}`, which the definition needs"
                raise UsageError(problem.slug, what, "write this file by hand")
            yield f"{how.indent}{scalar.name} = {scalar.value!r}"
    same_order = definition.parameters == tuple(given)
    call = f"reference({', '.join(name if same_order else f'{name}={name}' for name in given)})"
    outputs = [each for each in problem.tensors if each.role != "input"]
    values = [call]
    if len(outputs) > 1:
        results = free("results", {*given, *(each.name for each in outputs), *definition.names})
        yield f"{how.indent}{results} = {call}"
        values = [f"{results}[{number}]" for number in range(len(outputs))]
    for output, value in zip(outputs, values, strict=True):
        yield from (how.indent + line for line in _put(problem, how, output, value))
    if how.result:
        yield f"{how.indent}return {how.result}"


def _put(problem: Problem, how: Calling, output: TensorSpec, value: str) -> Iterator[str]:
    """Copy a result into an output, or name it if the submission returns it."""
    packed = ".view(torch.uint8)" if output.dtype == "float4_e2m1fn_x2" else ""  # which torch copies in no other way
    if output.name not in how.known:
        cast = _cast(problem, how, output)
        several = f"[each{cast} for each in {value}]" if cast else value
        yield f"{output.name} = {several if output.count is not None else value + cast}"
    elif output.count is None:
        yield f"{output.name}{packed}.copy_({value}{packed})"
    else:
        yield f"for one, other in zip({output.name}, {value}, strict=True):"
        yield f"    one{packed}.copy_(other{packed})"


def _cast(problem: Problem, how: Calling, output: TensorSpec) -> str:
    """To the dtype of the output, which the definition of a float may leave to the harness."""
    if output.dtype in DTYPES:
        return f".to(torch.{output.dtype})" if DTYPES[output.dtype].family in ("float", "complex") else ""
    like = (each for each in problem.tensors if each.dtype == output.dtype and each.name in how.known)
    for each in like:
        return f".to({each.name}{'[0]' if each.count is not None else ''}.dtype)"
    return ""
