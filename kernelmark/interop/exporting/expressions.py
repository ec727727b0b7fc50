"""Writes the expressions of `problem.toml` as Python, with which an exported file computes sizes. Trusted."""

from __future__ import annotations

import ast

from harness.problem.dtypes import DTYPES
from harness.problem.expression import parse


def python(text: str | int) -> str:
    """The expression in Python; a parameter that holds a dtype is a `torch.dtype` there."""
    if not isinstance(text, str):
        return repr(text)
    tree = ast.parse(parse(text).text, mode="eval").body  # of its own: the parsed ones are shared
    return ast.unparse(_Python().visit(tree))


class _Python(ast.NodeTransformer):
    """Replaces the functions that Python does not have."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        assert isinstance(node.func, ast.Name)  # the language has no other calls
        arguments = [ast.unparse(self.visit(argument)) for argument in node.args]
        match node.func.id:
            case "ceil_div":
                text = f"-(-({arguments[0]}) // ({arguments[1]}))"
            case "sizeof":
                dtype = DTYPES.get(arguments[0])
                text = str(dtype.size_bytes) if dtype else f"{arguments[0]}.itemsize"
            case function:
                text = f"{function}({', '.join(arguments)})"
        return ast.parse(text, mode="eval").body
