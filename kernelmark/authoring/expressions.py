"""Writes the expressions of `problem.toml` as Python that needs nothing but `math`, and as C. Trusted.

First kernels (`start`) and files for other projects (`exporting`) compute sizes with them.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Sequence

from harness.problem.dtypes import DTYPES
from harness.problem.expression import parse


def python(text: str | int | float, *, real: bool = False) -> str:
    """The expression in Python; a parameter that holds a dtype is a `torch.dtype` there."""
    if not isinstance(text, str):
        return repr(text)
    tree = ast.parse(parse(text, real=real).text, mode="eval").body  # of its own: the parsed ones are shared
    return ast.unparse(_Python().visit(tree))


def size(expression: int | str) -> str:
    """One size or stride in C; a power is a call of `integer_power(base, exponent)`."""
    if isinstance(expression, int):
        return str(expression)
    tree = ast.parse(parse(expression).text, mode="eval")
    return ast.unparse(_C().visit(tree))


def product(factors: Sequence[int | str]) -> str:
    """The product of sizes in C; its constants are multiplied here, since two of C's would be multiplied as `int`."""
    number = math.prod(factor for factor in factors if isinstance(factor, int))
    rest = [size(factor) for factor in factors if isinstance(factor, str)]
    if len(rest) + (number != 1) > 1:
        rest = [_factor(text) for text in rest]
    return " * ".join([*([str(number)] if number != 1 or not rest else []), *rest])


def place(sizes: Sequence[int | str], strides: Sequence[int | str], i: str) -> str:
    """Where element number `i` of a tensor in row-major order is, in elements, in C."""
    terms = []
    for number, stride in enumerate(strides):
        inner = sizes[number + 1 :]
        at = f"{i} / {_factor(product(inner))}" if inner else i
        at = f"{at} % {_factor(size(sizes[number]))}" if number else at
        terms.append(at if stride in (1, "1") else f"{at} * {_factor(size(stride))}")
    return " + ".join(terms) or "0"


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
            case "sqrt":
                text = f"math.sqrt({arguments[0]})"
            case function:
                text = f"{function}({', '.join(arguments)})"
        return ast.parse(text, mode="eval").body


class _C(ast.NodeTransformer):
    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.op, ast.FloorDiv):
            return ast.BinOp(node.left, ast.Div(), node.right)
        if isinstance(node.op, ast.Pow):
            return _call("integer_power", node.left, node.right)
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name == "sizeof" and isinstance(of := node.args[0], ast.Name) and of.id in DTYPES:
            return ast.Constant(DTYPES[of.id].size_bytes)
        self.generic_visit(node)
        if name == "ceil_div":
            above, below = node.args
            rounded = ast.BinOp(ast.BinOp(above, ast.Add(), below), ast.Sub(), ast.Constant(1))
            return ast.BinOp(rounded, ast.Div(), below)
        if name in ("min", "max"):
            first, *rest = node.args
            for other in rest:
                first = _call(f"std::{name}<int64_t>", first, other)
            return first
        return node


def _call(name: str, *arguments: ast.expr) -> ast.expr:
    return ast.Call(ast.Name(name, ast.Load()), list(arguments), [])


def _factor(text: str) -> str:
    return text if text.isidentifier() or text.isdigit() else f"({text})"
