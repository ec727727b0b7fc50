"""The arithmetic that a `problem.toml` may contain: shapes, counts, scalars and costs over a case's parameters.

Values are whole numbers, except those of float64 scalars, which may also use `/`, `sqrt` and decimals.

An expression is parsed to Python's syntax tree, and every node is checked against a short list: nothing is executed.
Trusted code over an organizer's text; every value is bounded, so no expression can take long or grow large.
"""

from __future__ import annotations

import ast
import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from harness.problem.dtypes import DTYPES

MAX_CHARACTERS = 400
MAX_VALUE = 2**63 - 1
FUNCTIONS = ("min", "max", "ceil_div", "sizeof", "elements", "sqrt")


class ExpressionError(ValueError):
    """An expression that is not in the language, or has no value for these parameters; `str()` is one line."""


@dataclass(frozen=True)
class Expression:
    """A parsed expression: its text, and the names of parameters and dtypes that it mentions."""

    text: str
    names: frozenset[str]
    tree: ast.expr

    def value(self, parameters: Mapping[str, int | str]) -> int:
        """Its value, at most 2⁶³ - 1 in magnitude at every step.

        Raises:
            ExpressionError: an unknown name, text instead of a number, a division by zero, or a value too large.
        """
        try:
            return _value(self.tree, parameters)
        except ExpressionError as error:
            raise ExpressionError(f"`{self.text}`: {error}") from None

    def real(self, parameters: Mapping[str, int | str]) -> float:
        """The value of an expression that was parsed as `real`: finite at every step.

        Raises:
            ExpressionError: as for `value`, or a value that is not real or not finite.
        """
        try:
            return _real(self.tree, parameters)
        except ExpressionError as error:
            raise ExpressionError(f"`{self.text}`: {error}") from None


@functools.lru_cache(maxsize=1024)  # the members of a list are sized by the same few expressions
def parse(text: str, *, real: bool = False) -> Expression:
    """Read an expression: `+ - * // % **`, unary `-`, parentheses, whole numbers, names and functions.

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
        (_check_real if real else _check)(tree, names)
    except ExpressionError as error:
        raise ExpressionError(f"`{shown}`: {error}") from None
    return Expression(shown, frozenset(names), tree)


def evaluate(text: str | int, parameters: Mapping[str, int | str]) -> int:
    """Parse `text` and return its value; a whole number is its own value.

    Raises:
        ExpressionError: as for `parse` and `Expression.value`.
    """
    return text if isinstance(text, int) else parse(text).value(parameters)


def _reason(error: Exception) -> str:
    return error.msg if isinstance(error, SyntaxError) and error.msg else str(error) or "nested too deeply"


def _check(node: ast.expr, names: set[str]) -> None:
    """Refuse every node that is not in the language, and collect the names."""
    match node:
        case ast.Constant(value=value) if type(value) is int:
            _bounded(value)
        case ast.Name(id=name):
            if name in FUNCTIONS:
                raise ExpressionError(f"`{name}` is a function: write `{name}(…)`")
            names.add(name)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            _check(operand, names)
        case ast.BinOp(left=left, op=op, right=right):
            if type(op) not in _OPERATORS:
                slash = "; write `//` for whole-number division" if isinstance(op, ast.Div) else ""
                raise ExpressionError(f"only + - * // % ** are allowed{slash}")
            _check(left, names)
            _check(right, names)
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in FUNCTIONS:
            _check_call(name, args, names)
        case _:
            raise ExpressionError(f"only whole numbers, names, + - * // % ** and {', '.join(FUNCTIONS)} are allowed")


def _check_real(node: ast.expr, names: set[str]) -> None:
    """The same where fractions are allowed; the operands of `//`, `%` and the other functions are whole numbers."""
    match node:
        case ast.Constant(value=value) if type(value) is float:
            _finite(value)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            _check_real(operand, names)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _REAL_OPERATORS:
            _check_real(left, names)
            _check_real(right, names)
        case ast.Call(func=ast.Name(id="sqrt"), args=[argument], keywords=[]):
            _check_real(argument, names)
        case _:
            _check(node, names)


def _check_call(name: str, args: list[ast.expr], names: set[str]) -> None:
    if name == "sizeof" and not (len(args) == 1 and isinstance(args[0], ast.Name)):
        raise ExpressionError("`sizeof` takes one dtype, or one parameter that holds a dtype")
    if name == "elements":
        if not (len(args) == 1 and isinstance(args[0], ast.Name)):
            raise ExpressionError("`elements` takes the name of one tensor or list of tensors")
        return
    if name == "ceil_div" and len(args) != 2:
        raise ExpressionError("`ceil_div` takes two arguments")
    if name == "sqrt":
        raise ExpressionError(
            "`sqrt` takes one argument, and only a float64 scalar and the bounds of a `uniform` fill may have it"
        )
    if name in ("min", "max") and len(args) < 2:
        raise ExpressionError(f"`{name}` takes two or more arguments")
    for arg in args:
        _check(arg, names)


def _value(node: ast.expr, parameters: Mapping[str, int | str]) -> int:
    match node:
        case ast.Constant(value=int(number)):
            return number
        case ast.Name(id=name):
            return _number(name, parameters)
        case ast.UnaryOp(operand=operand):
            return -_value(operand, parameters)
        case ast.BinOp(left=left, op=op, right=right):
            return _bounded(_OPERATORS[type(op)](_value(left, parameters), _value(right, parameters)))
        case ast.Call(func=ast.Name(id="sizeof"), args=[ast.Name(id=name)]):
            return _sizeof(name, parameters)
        case ast.Call(func=ast.Name(id="elements"), args=[ast.Name(id=name)]):
            return _elements(name, parameters)
        case ast.Call(func=ast.Name(id=name), args=args):
            values = [_value(arg, parameters) for arg in args]
            return min(values) if name == "min" else max(values) if name == "max" else -_floor(-values[0], values[1])
    raise AssertionError(f"{ast.dump(node)} passed the check")


def _real(node: ast.expr, parameters: Mapping[str, int | str]) -> float:
    match node:
        case ast.Constant(value=value) if isinstance(value, int | float):
            return float(value)
        case ast.UnaryOp(operand=operand):
            return -_real(operand, parameters)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _REAL_OPERATORS:
            return _computed(_REAL_OPERATORS[type(op)], _real(left, parameters), _real(right, parameters))
        case ast.Call(func=ast.Name(id="sqrt"), args=[argument]):
            return _computed(math.sqrt, _real(argument, parameters))
    return float(_value(node, parameters))


def _computed(operator: Callable[..., float], *operands: float) -> float:
    try:
        value = operator(*operands)
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


def _number(name: str, parameters: Mapping[str, int | str]) -> int:
    value = parameters.get(name)
    if value is None:
        raise ExpressionError(f"`{name}` is not a parameter")
    if isinstance(value, str):
        raise ExpressionError(f"`{name}` holds {value!r}, not a number")
    return _bounded(value)  # -2⁶³ is a valid integer in TOML, but its negative does not fit a C int64


def _sizeof(name: str, parameters: Mapping[str, int | str]) -> int:
    dtype = parameters.get(name, name)
    if dtype not in DTYPES:
        raise ExpressionError(f"sizeof({name}): {dtype!r} is not a dtype")
    return DTYPES[str(dtype)].size_bytes


def elements_key(tensor: str) -> str:
    """The parameter key for `elements(tensor)` in an expression; no parameter can have such a name."""
    return f"elements({tensor})"


def _elements(name: str, parameters: Mapping[str, int | str]) -> int:
    value = parameters.get(elements_key(name))
    if value is None:
        known = sorted(key for key in parameters if key.startswith("elements("))
        if known:
            raise ExpressionError(f"`{name}` is not a tensor")
        raise ExpressionError("`elements` works only in costs and in `sum_length`, when all shapes are known")
    return _bounded(int(value))


def _bounded(value: int) -> int:
    if abs(value) > MAX_VALUE:
        raise ExpressionError("a value exceeds 2⁶³ - 1")
    return value


def _floor(left: int, right: int) -> int:
    if right == 0:
        raise ExpressionError("division by zero")
    return left // right


def _modulo(left: int, right: int) -> int:
    if right == 0:
        raise ExpressionError("division by zero")
    return left % right


def _power(base: int, exponent: int) -> int:
    if exponent < 0:
        raise ExpressionError("a negative exponent")
    # Decided before it is computed: 10 ** 10 ** 10 would otherwise fill memory.
    if abs(base) > 1 and exponent * (abs(base).bit_length() - 1) > 63:
        raise ExpressionError("a value exceeds 2⁶³ - 1")
    return int(base**exponent)


_OPERATORS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: lambda left, right: left + right,
    ast.Sub: lambda left, right: left - right,
    ast.Mult: lambda left, right: left * right,
    ast.FloorDiv: _floor,
    ast.Mod: _modulo,
    ast.Pow: _power,
}
_REAL_OPERATORS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: lambda left, right: left + right,
    ast.Sub: lambda left, right: left - right,
    ast.Mult: lambda left, right: left * right,
    ast.Div: lambda left, right: left / right,
    ast.Pow: math.pow,
}
