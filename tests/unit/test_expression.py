"""The expression language: what it computes, and what it refuses."""

from __future__ import annotations

import operator
import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from harness.problem.expression import MAX_CHARACTERS, MAX_VALUE, ExpressionError, evaluate, parse

PARAMETERS: dict[str, int | str] = {"m": 7, "n": 5, "dtype": "bfloat16", "lowest": -(2**63)}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (" m + n ", 12),
        ("2 ** 3 ** 2", 512),
        ("-2 ** 2", -4),
        ("0 ** 0", 1),
        ("1 ** 9223372036854775807", 1),
        ("(-1) ** 9223372036854775807", -1),
        ("2 ** 62", 2**62),
        ("min(m, n, 6)", 5),
        ("max(m, n, 6)", 7),
        ("ceil_div(m, 2)", 4),
        ("sizeof(dtype)", 2),
        ("sizeof(float64) + sizeof(bool)", 9),
        ("9223372036854775807", MAX_VALUE),
    ],
)
def test_computes(text: str, value: int) -> None:
    assert evaluate(text, PARAMETERS) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1 / sqrt(m)", 7**-0.5),
        ("m / n", 1.4),
        ("-m // 2 + 0.5", -3.5),
        ("2 ** -1", 0.5),
        ("m ** 0.5", 7**0.5),
        ("-sqrt(min(m, n))", -(5**0.5)),
        ("sizeof(dtype) / 4", 0.5),
        ("1e-5", 1e-5),
    ],
)
def test_a_float64_scalar_may_be_a_fraction(text: str, value: float) -> None:
    assert parse(text, real=True).real(PARAMETERS) == pytest.approx(value, rel=1e-15)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("1 / (m - 7)", "division by zero"),
        ("sqrt(-m)", "no real value"),
        ("(-m) ** 0.5", "no real value"),
        ("0 ** -1", "no real value"),
        ("10.0 ** 400", "not finite"),
        ("1 / k", "`k` is not a parameter"),
        ("dtype / 2", "holds 'bfloat16', not a number"),
    ],
)
def test_a_fraction_without_a_value_is_refused(text: str, why: str) -> None:
    with pytest.raises(ExpressionError, match=re.escape(why)):
        parse(text, real=True).real(PARAMETERS)


@pytest.mark.parametrize("text", ["1e999", "m // 0.5", "0.5 % m", "max(m, 0.5)", "sqrt(m, n)", "sqrt", "1j", "m.real"])
def test_a_fraction_has_no_more_than_that(text: str) -> None:
    with pytest.raises(ExpressionError):
        parse(text, real=True)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "not an expression"),
        ("m\nn", "not an expression"),
        ("(" * 300 + "m" + ")" * 300, "at most"),
        ("m / 2", "write `//`"),
        ("m << 2", "only + - *"),
        ("m.real", "are allowed"),
        ("lambda: m", "are allowed"),
        ("+m", "are allowed"),
        ("1.5 * m", "are allowed"),
        ("True", "are allowed"),
        ("'m'", "are allowed"),
        ("sqrt(m)", "only a float64 scalar"),
        ("__import__('os')", "are allowed"),
        ("min(*m, n)", "are allowed"),
        ("min(m, key=n)", "are allowed"),
        ("min(m)", "two or more"),
        ("ceil_div(m)", "two arguments"),
        ("sizeof(2)", "takes one dtype"),
        ("elements(2 * m)", "takes the name of one tensor"),
        ("min + 1", "is a function"),
        ("99999999999999999999", "exceeds"),
    ],
)
def test_refuses_to_parse(text: str, why: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        parse(text)
    assert why in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("rows", "`rows` is not a parameter"),
        ("2 * dtype", "`dtype` holds 'bfloat16', not a number"),
        ("sizeof(float31)", "'float31' is not a dtype"),
        ("elements(x)", "works only in costs"),
        ("m // (n - 5)", "division by zero"),
        ("m % 0", "division by zero"),
        ("ceil_div(m, 0)", "division by zero"),
        ("2 ** -1", "negative exponent"),
        ("2 ** 64", "exceeds"),
        ("10 ** 10 ** 10", "exceeds"),
        ("3037000500 * 3037000500", "exceeds"),
        ("lowest", "exceeds"),
        ("ceil_div(lowest, -1)", "exceeds"),
    ],
)
def test_refuses_to_evaluate(text: str, why: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        evaluate(text, PARAMETERS)
    assert why in str(caught.value)
    assert f"`{text}`" in str(caught.value)


def test_names_are_those_of_parameters_and_dtypes() -> None:
    assert parse("min(m, n) * sizeof(dtype)").names == {"m", "n", "dtype"}


_Pair = tuple[str, int | None]
_SIGNS = {"+": operator.add, "-": operator.sub, "*": operator.mul, "//": operator.floordiv, "%": operator.mod}


def _binary(parts: tuple[_Pair, str, _Pair]) -> _Pair:
    (left, a), sign, (right, b) = parts
    text = f"({left} {sign} {right})"
    if a is None or b is None or (b == 0 and sign in ("//", "%")):
        return text, None
    return text, _SIGNS[sign](a, b)


_pairs = st.recursive(
    st.one_of(st.integers(0, 50).map(lambda n: (str(n), n)), st.sampled_from([("m", 7), ("n", 5)])),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(list(_SIGNS)), inner).map(_binary),
        inner.map(lambda pair: (f"(-{pair[0]})", None if pair[1] is None else -pair[1])),
    ),
    max_leaves=8,
)


@given(_pairs)
def test_agrees_with_python(pair: _Pair) -> None:
    text, expected = pair
    assume(len(text) <= MAX_CHARACTERS)
    if expected is not None and abs(expected) <= MAX_VALUE:
        assert evaluate(text, PARAMETERS) == expected
    elif expected is None:
        with pytest.raises(ExpressionError, match="division by zero"):
            evaluate(text, PARAMETERS)


_tokens = st.sampled_from([*"+-*%(), mn0", "//", "**", "min", "max", "ceil_div", "sizeof", "dtype", "9" * 19])


@given(st.lists(_tokens, max_size=20).map("".join), st.integers(-(2**63), 2**63 - 1))
def test_any_row_of_tokens_gives_a_bounded_number_or_one_error(text: str, m: int) -> None:
    """Parameters from the whole range of TOML; what the expression is shown as means the same."""
    parameters = {**PARAMETERS, "m": m}
    try:
        parsed = parse(text)
        value = parsed.value(parameters)
    except ExpressionError as error:
        message = str(error)
        assert "\n" not in message
        return
    assert abs(value) <= MAX_VALUE
    assert parse(parsed.text).value(parameters) == value
