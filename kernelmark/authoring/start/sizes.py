"""Sizes and places of a problem's tensors, written as C. Trusted."""

from __future__ import annotations

import ast
import math
from collections.abc import Sequence

from harness.problem.dtypes import DTYPES
from harness.problem.expression import parse
from harness.problem.spec import TensorSpec


def size(expression: int | str) -> str:
    """One size or stride; a power is a call of `integer_power(base, exponent)`."""
    if isinstance(expression, int):
        return str(expression)
    tree = ast.parse(parse(expression).text, mode="eval")
    return ast.unparse(_C().visit(tree))


def product(factors: Sequence[int | str]) -> str:
    """The product of sizes; its constants are multiplied here, since two of C's would be multiplied as `int`."""
    number = math.prod(each for each in factors if isinstance(each, int))
    rest = [size(each) for each in factors if isinstance(each, str)]
    if len(rest) + (number != 1) > 1:
        rest = [_factor(each) for each in rest]
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


def call(head: str, arguments: Sequence[str], tail: str) -> str:
    """`head(arguments)tail`, on several lines if it is long."""
    line = f"{head}({', '.join(arguments)}){tail}"
    if len(line) <= 116:
        return line
    indent = " " * (len(head) - len(head.lstrip()))
    lines = [f"{indent}   "]
    for number, each in enumerate(arguments):
        ended = each + "," * (number + 1 < len(arguments))
        if len(lines[-1]) + len(ended) > 114:
            lines.append(f"{indent}   ")
        lines[-1] += f" {ended}"
    return "\n".join([f"{head}(", *lines, f"{indent}){tail}"])


def table(tensors: Sequence[TensorSpec]) -> list[str]:
    """A line about each tensor: its name, shape, dtype and role."""
    rows = [(each.name, _shape(each), each.dtype, each.role) for each in tensors]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    return ["  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[3]]) for row in rows]


def _shape(tensor: TensorSpec) -> str:
    shape = f"[{', '.join(map(str, tensor.shape))}]"
    strides = f" strides [{', '.join(map(str, tensor.strides))}]" if tensor.strides is not None else ""
    return (f"{tensor.count} × " if tensor.count is not None else "") + shape + strides


def _factor(text: str) -> str:
    return text if text.isidentifier() or text.isdigit() else f"({text})"


class _C(ast.NodeTransformer):
    """Replaces what C writes in another way."""

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
            for each in rest:
                first = _call(f"std::{name}<int64_t>", first, each)
            return first
        return node


def _call(name: str, *arguments: ast.expr) -> ast.expr:
    return ast.Call(ast.Name(name, ast.Load()), list(arguments), [])
