"""Evaluates the arithmetic in a `problem.toml`: shapes, counts, scalars and costs over a case's parameters.

Values are whole numbers, except those of float64 scalars, which may also use `/`, `sqrt` and decimals.

An expression is parsed to Python's syntax tree, and each node of a few allowed kinds becomes a function: nothing is
executed. Trusted code that reads an organizer's text. All values are limited, so no expression can take long.
"""

from __future__ import annotations

import ast
import functools
import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from harness.problem.dtypes import DTYPES

MAX_CHARACTERS = 400
MAX_VALUE = 2**63 - 1
FUNCTIONS = ("min", "max", "ceil_div", "sizeof", "elements", "sum_of", "sqrt")


class ExpressionError(ValueError):
    """An expression is not valid, or has no value for these parameters; `str()` is one line."""


Parameters = Mapping[str, int | str]
Compute = Callable[[Parameters], Any]
"""Computes the value of an expression or a part of it: a whole number, or a float if fractions are allowed."""


@dataclass(frozen=True)
class Expression:
    """A parsed expression: its text, the names of parameters and dtypes in it, and a function for its value."""

    text: str
    names: frozenset[str]
    compute: Callable[[Parameters], float]

    def value(self, parameters: Parameters) -> int:
        """The value, at most 2⁶³ - 1 in magnitude at every step.

        Raises:
            ExpressionError: an unknown name, text instead of a number, a division by zero, or a value too large.
        """
        return int(self.real(parameters))

    def real(self, parameters: Parameters) -> float:
        """The value of an expression that was parsed as `real`; it is finite at every step.

        Raises:
            ExpressionError: as for `value`, or a value that is not real or not finite.
        """
        try:
            return self.compute(parameters)
        except ExpressionError as error:
            raise ExpressionError(f"`{self.text}`: {error}") from None


@functools.lru_cache(maxsize=1024)  # the members of a list have the same few expressions
def parse(text: str, *, real: bool = False) -> Expression:
    """Parse an expression: `+ - * // % **`, unary `-`, parentheses, whole numbers, names and functions.

    Args:
        real: whether `/`, `sqrt` and decimal numbers are allowed, too.

    Raises:
        ExpressionError: it contains anything else.
    """
    if len(text) > MAX_CHARACTERS:
        raise ExpressionError(f"an expression has at most {MAX_CHARACTERS} characters, this one {len(text)}")
    shown = " ".join(text.split())
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        raise ExpressionError(f"`{shown}` is not an expression ({_reason(error)})") from None
    names: set[str] = set()
    try:
        compute = _compiled(tree, names, real=real)
    except ExpressionError as error:
        raise ExpressionError(f"`{shown}`: {error}") from None
    return Expression(shown, frozenset(names), (lambda parameters: float(compute(parameters))) if real else compute)


def evaluate(text: str | int, parameters: Parameters) -> int:
    """Parse `text` and return its value; a whole number is its own value.

    Raises:
        ExpressionError: as for `parse` and `Expression.value`.
    """
    return text if isinstance(text, int) else parse(text).value(parameters)


def _reason(error: Exception) -> str:
    return error.msg if isinstance(error, SyntaxError) and error.msg else str(error) or "nested too deeply"


def _compiled(node: ast.expr, names: set[str], *, real: bool) -> Compute:
    """Make a function that computes the value of a node, and add the node's names to `names`.

    If fractions are allowed (`real`), the operands of `//`, `%` and all functions but `sqrt` are whole numbers.
    """
    match node:
        case ast.Constant(value=number) if type(number) is int or (real and type(number) is float):
            constant = _bounded(number) if type(number) is int else _finite(number)
            return lambda _: constant
        case ast.Name(id=name):
            if name in FUNCTIONS:
                raise ExpressionError(f"`{name}` is a function: write `{name}(…)`")
            names.add(name)
            return lambda parameters: _number(name, parameters)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            positive = _compiled(operand, names, real=real)
            return lambda parameters: -positive(parameters)
        case ast.BinOp(left=left, op=op, right=right):
            fractions = real and type(op) in _REAL_OPERATORS
            if not fractions and type(op) not in _OPERATORS:
                slash = "; write `//` for whole-number division" if isinstance(op, ast.Div) else ""
                raise ExpressionError(f"only + - * // % ** are allowed{slash}")
            first, second = (_compiled(side, names, real=fractions) for side in (left, right))
            if fractions:
                return lambda parameters: _compute_real(
                    _REAL_OPERATORS[type(op)], first(parameters), second(parameters)
                )
            return lambda parameters: _bounded(_OPERATORS[type(op)](first(parameters), second(parameters)))
        case ast.Call(func=ast.Name(id="sqrt"), args=[argument], keywords=[]) if real:
            square = _compiled(argument, names, real=True)
            return lambda parameters: _compute_real(math.sqrt, square(parameters))
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in FUNCTIONS:
            return _call(name, args, names)
    raise ExpressionError(f"only whole numbers, names, + - * // % ** and {', '.join(FUNCTIONS)} are allowed")


def _call(name: str, args: list[ast.expr], names: set[str]) -> Compute:
    named = args[0].id if len(args) == 1 and isinstance(args[0], ast.Name) else None
    if name == "elements":
        if named is None:
            raise ExpressionError("`elements` takes the name of one tensor or list of tensors")
        return lambda parameters: _elements(named, parameters)
    if name == "sum_of":
        if named is None:
            raise ExpressionError("`sum_of` takes the name of one tensor or list of tensors")
        return lambda parameters: _sum_of(named, parameters)
    if name == "sizeof":
        if named is None:
            raise ExpressionError("`sizeof` takes one dtype, or one parameter that holds a dtype")
        names.add(named)
        return lambda parameters: _sizeof(named, parameters)
    if name == "sqrt":
        raise ExpressionError(
            "`sqrt` takes one argument, and only a float64 scalar and the bounds of a `uniform` fill may have it"
        )
    if name == "ceil_div" and len(args) != 2:
        raise ExpressionError("`ceil_div` takes two arguments")
    if len(args) < 2:
        raise ExpressionError(f"`{name}` takes two or more arguments")
    values = [_compiled(arg, names, real=False) for arg in args]
    if name == "ceil_div":
        return lambda parameters: -_floor(-values[0](parameters), values[1](parameters))
    chosen = min if name == "min" else max
    return lambda parameters: chosen(value(parameters) for value in values)


def _compute_real(combine: Callable[..., float], *operands: float) -> float:
    try:
        value = combine(*map(float, operands))
    except ZeroDivisionError:
        raise ExpressionError("division by zero") from None
    except OverflowError:
        raise ExpressionError("a value that is not finite") from None
    except ValueError:
        raise ExpressionError("no real value: a root of a negative number, or 0 to a negative power") from None
    return _finite(value)


def _finite(value: float) -> float:
    if not math.isfinite(value):
        raise ExpressionError("a value that is not finite")
    return value


def _number(name: str, parameters: Parameters) -> int:
    value = parameters.get(name)
    if value is None:
        raise ExpressionError(f"`{name}` is not a parameter")
    if isinstance(value, str):
        raise ExpressionError(f"`{name}` holds {value!r}, not a number")
    return _bounded(value)  # -2⁶³ is a valid integer in TOML, but its negative does not fit a C int64


def _sizeof(name: str, parameters: Parameters) -> int:
    dtype = parameters.get(name, name)
    if dtype not in DTYPES:
        raise ExpressionError(f"sizeof({name}): {dtype!r} is not a dtype")
    return DTYPES[str(dtype)].size_bytes


def elements_key(tensor: str) -> str:
    """The parameter key for `elements(tensor)` in an expression; no parameter can have such a name."""
    return f"elements({tensor})"


def _elements(name: str, parameters: Parameters) -> int:
    value = parameters.get(elements_key(name))
    if value is None:
        known = sorted(key for key in parameters if key.startswith("elements("))
        if known:
            raise ExpressionError(f"`{name}` is not a tensor")
        raise ExpressionError("`elements` works only in costs and in `sum_length`, when all shapes are known")
    return _bounded(int(value))


def total_key(tensor: str) -> str:
    """The parameter key for `sum_of(tensor)`, the sum of its elements."""
    return f"sum_of({tensor})"


def _sum_of(name: str, parameters: Parameters) -> int:
    value = parameters.get(total_key(name))
    if value is None:
        what = f"`{name}` is no `generated` input of whole numbers"
        raise ExpressionError(f"`sum_of` works only in costs, and {what}")
    return _bounded(int(value))


def _bounded(value: int) -> int:
    if abs(value) > MAX_VALUE:
        raise ExpressionError("a value exceeds 2⁶³ - 1")
    return value


def _floor(left: int, right: int) -> int:
    return left // _divisor(right)


def _divisor(value: int) -> int:
    if value == 0:
        raise ExpressionError("division by zero")
    return value


def _power(base: int, exponent: int) -> int:
    if exponent < 0:
        raise ExpressionError("a negative exponent")
    # Checked before the power is computed: 10 ** 10 ** 10 would fill the memory.
    if abs(base) > 1 and exponent * (abs(base).bit_length() - 1) > 63:
        raise ExpressionError("a value exceeds 2⁶³ - 1")
    return int(base**exponent)


_OPERATORS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: _floor,
    ast.Mod: lambda left, right: left % _divisor(right),
    ast.Pow: _power,
}
_REAL_OPERATORS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: math.pow,
}
