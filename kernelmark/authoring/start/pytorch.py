"""A first submission in PyTorch: the definition, cut out of its file, and code that returns its results. Trusted."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from harness.errors import UsageError
from harness.files import outside
from harness.problem import Problem
from harness.problem.dtypes import DTYPES
from harness.problem.spec import TensorSpec
from harness.shared.foreign import FORMS
from kernelmark.authoring.rendering import render
from kernelmark.authoring.start.source import Calling, argument_names, calling, free, refuse_taken


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
    inputs = [name for name in argument_names(problem) if name not in names]
    same_order = definition.parameters == tuple(inputs)
    return {
        "constants": [(name, repr(value)) for name, value in constants],
        "reference": f"reference({', '.join(name if same_order else f'{name}={name}' for name in inputs)})",
        "results": free("results", {*argument_names(problem), *definition.names}),
        "outputs": [tensor for tensor in problem.tensors if tensor.role != "input"],
        "cast": lambda output: _cast(problem, how, output),
    }


def _cast(problem: Problem, how: Calling, output: TensorSpec) -> str:
    """The conversion to an output's dtype; a definition may leave that to the harness for floating-point outputs."""
    if output.dtype in DTYPES:
        return f".to(torch.{output.dtype})" if DTYPES[output.dtype].family in ("float", "complex") else ""
    same = (tensor for tensor in problem.tensors if tensor.dtype == output.dtype and tensor.name in how.known)
    like = next(same, None)
    return f".to({like.name}{'[0]' if like.count is not None else ''}.dtype)" if like is not None else ""


@dataclass(frozen=True)
class Definition:
    """A part of a file."""

    source: str
    """Its lines, comments included, without the docstring of the file."""
    names: frozenset[str]
    """The names that it defines and imports."""
    modules: frozenset[str]
    """The modules that it imports, without their submodules."""
    parameters: tuple[str, ...]
    """The parameters of the function; none for a class."""


def cut(source: str, name: str, where: str) -> Definition:
    """The definition of the function or class `name`, and of what it uses.

    Raises:
        UsageError: the file is not Python, does not define it, or has the function of a new problem, which only raises
        NotImplementedError; `where` names the file.
    """
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise UsageError(where, f"is not Python ({type(error).__name__})") from None
    statements = [node for node in tree.body if not _is_text(node) and not _runs_only_as_a_script(node)]
    if not any(name in _bound(node) for node in statements):
        raise UsageError(where, f"does not define `{name}`")
    needed = {name}
    kept: list[ast.stmt] = []
    while more := [node for node in statements if node not in kept and _wanted(node, needed)]:
        kept += more
        needed |= {name.id for node in more for name in ast.walk(node) if isinstance(name, ast.Name)}
    functions = [node for node in kept if isinstance(node, ast.FunctionDef) and node.name == name]
    if functions and any(map(_raises_not_implemented, functions[-1].body)):
        raise UsageError(where, "does nothing but raise NotImplementedError", f"fill in `{name}` there first")
    arguments = functions[-1].args if functions else None
    parameters = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs] if arguments else []
    return Definition(
        _lines_of(source, kept, tree.body),
        frozenset(bound for node in kept for bound in _bound(node)),
        frozenset(module.partition(".")[0] for node in kept for module in _imported(node)),
        tuple(parameter.arg for parameter in parameters),
    )


def _wanted(node: ast.stmt, needed: set[str]) -> bool:
    """Whether a statement defines something needed, or does something else than define."""
    bound = set(_bound(node))
    return not bound or bool(bound & needed)


def _bound(node: ast.stmt) -> Iterator[str]:
    """The names that a definition, an import or an assignment gives a value; none of any other statement."""
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.ImportFrom(module="__future__"):
            return
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            yield from (alias.asname or alias.name.partition(".")[0] for alias in names if alias.name != "*")
        case ast.Assign(targets=targets):
            yield from (name for target in targets for name in _stored(target))
        case ast.AnnAssign(target=target) | ast.AugAssign(target=target):
            yield from _stored(target)


def _stored(target: ast.expr) -> Iterator[str]:
    yield from (name.id for name in ast.walk(target) if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store))


def _imported(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [node.module] if isinstance(node, ast.ImportFrom) and node.module else []


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _raises_not_implemented(node: ast.stmt) -> bool:
    raised = ast.walk(node) if isinstance(node, ast.Raise) else ()
    return any(isinstance(name, ast.Name) and name.id == "NotImplementedError" for name in raised)


def _runs_only_as_a_script(node: ast.stmt) -> bool:
    tested = ast.walk(node.test) if isinstance(node, ast.If) else ()
    return any(isinstance(name, ast.Name) and name.id == "__name__" for name in tested)


def _lines_of(source: str, kept: list[ast.stmt], statements: list[ast.stmt]) -> str:
    """The lines of these statements, each with the comments between it and the statement before."""
    lines, shown, above = source.splitlines(), set[int](), 0
    for node in statements:
        end = node.end_lineno or node.lineno
        if node in kept:
            shown.update(range(min(above, node.lineno - 1), end))
        above = end
    text = "\n".join(line for number, line in enumerate(lines) if number in shown)
    return re.sub(r"\n{4,}", "\n\n\n", text).strip()
