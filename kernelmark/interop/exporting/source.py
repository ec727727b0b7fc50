"""Looks at a submission's text before it is exported: it is parsed, and never run. Trusted code, untrusted text."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from harness.errors import UsageError
from kernelmark.interop.exporting.request import Request


def check(request: Request) -> None:
    """Refuse a submission that the problem's entry is not in.

    Raises:
        UsageError: with the line, if it is one.
    """
    name, entry = request.submission.name, request.problem.entry
    if request.compiled:
        if not re.search(rf"\b{entry}", request.source):
            raise UsageError(name, f"no function `{entry}` is defined", "see `kernelmark problems show`")
        return
    try:
        tree = ast.parse(request.source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = f":{error.lineno}" if isinstance(error, SyntaxError) and error.lineno else ""
        raise UsageError(f"{name}{line}", f"is not Python ({getattr(error, 'msg', type(error).__name__)})") from None
    defined = set(_defined(tree.body))
    if not {entry, "*"} & defined:
        remedy = f"it is called as {request.problem.signature}"
        raise UsageError(name, f"no `{entry}` is defined at the top of the file", remedy)


def _defined(body: list[ast.stmt]) -> Iterator[str]:
    """The names that statements at the top define; `*` if an import may define any."""
    for node in body:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                yield from (each.asname or each.name for each in names)
            case ast.If() | ast.Try() | ast.With() | ast.For():
                inner = [each for each in ast.walk(node) if isinstance(each, ast.stmt) and each is not node]
                yield from _defined(inner)
            case _:
                yield from (each.id for each in ast.walk(node) if isinstance(each, ast.Name))
