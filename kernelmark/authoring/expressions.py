"""Writes the expressions of `problem.toml` as Python that needs nothing but `math`, and solves them. Trusted.

First kernels (`start`) and files for other projects (`exporting`) compute sizes with them.
"""

from __future__ import annotations

import ast

from harness.problem.dtypes import DTYPES
from harness.problem.expression import parse


def python(text: str | int | float, *, real: bool = False) -> str:
    """The expression in Python; a parameter that holds a dtype is a `torch.dtype` there."""
    return ast.unparse(_Python().visit(_tree(text, real=real))) if isinstance(text, str) else repr(text)


def names(text: str | int | float, *, real: bool = False) -> frozenset[str]:
    """The parameters that an expression mentions, and `index`."""
    return frozenset(parse(text, real=real).names - set(DTYPES) if isinstance(text, str) else ())


def solved(text: str, name: str, value: str) -> str | None:
    """What `name` is if the expression is `value`, as Python; None unless it is the only solution."""
    tree = _tree(text, real=False)
    uses = [each for each in ast.walk(tree) if isinstance(each, ast.Name) and each.id == name]
    return _solved(tree, name, value) if len(uses) == 1 else None


def _solved(tree: ast.expr, name: str, value: str) -> str | None:
    match tree:
        case ast.Name(id=found) if found == name:
            return value
        case ast.BinOp(left=left, op=op, right=right):
            on_left = any(isinstance(each, ast.Name) and each.id == name for each in ast.walk(left))
            inner, other = (left, right) if on_left else (right, left)
            known = ast.unparse(_Python().visit(other))
            match op:
                case ast.Add():
                    return _solved(inner, name, f"({value} - ({known}))")
                case ast.Sub():
                    return _solved(inner, name, f"({value} + ({known}))" if on_left else f"(({known}) - {value})")
                case ast.Mult():
                    return _solved(inner, name, f"({value} // ({known}))")
    return None


def _tree(text: str, *, real: bool) -> ast.expr:
    """A tree of its own: the parsed ones are shared."""
    return ast.parse(parse(text, real=real).text, mode="eval").body


class _Python(ast.NodeTransformer):
    """Replaces the functions that Python does not have."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        assert isinstance(node.func, ast.Name)  # the language has no other calls
        arguments = [ast.unparse(self.visit(each)) for each in node.args]
        match node.func.id:
            case "ceil_div":
                text = f"-(-({arguments[0]}) // ({arguments[1]}))"
            case "sizeof":
                dtype = DTYPES.get(arguments[0])
                text = str(dtype.size_bytes) if dtype else f"{arguments[0]}.itemsize"
            case "sqrt":
                text = f"math.sqrt({arguments[0]})"
            case function:
                text = f"{function}({', '.join(arguments)})"
        return ast.parse(text, mode="eval").body
