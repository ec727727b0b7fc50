"""Cuts out of a problem's file what its definition needs, and leaves `generate`, `compare` and their like behind."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from harness.errors import UsageError


@dataclass(frozen=True)
class Definition:
    """A part of a file."""

    source: str
    """Its lines, comments included, without the docstring of the file."""
    names: frozenset[str]
    """What it defines and imports."""
    modules: frozenset[str]
    """The modules that it imports, without their submodules."""
    parameters: tuple[str, ...]
    """The parameters of the function; none for a class."""


def cut(source: str, name: str, where: str) -> Definition:
    """The definition of the function or class `name`, and of what it uses.

    Raises:
        UsageError: the file is not Python, or does not define it; `where` names the file.
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


def _runs_only_as_a_script(node: ast.stmt) -> bool:
    asked = ast.walk(node.test) if isinstance(node, ast.If) else ()
    return any(isinstance(name, ast.Name) and name.id == "__name__" for name in asked)


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
