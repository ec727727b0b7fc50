"""Forms: what a call's arguments and result are made of."""

from __future__ import annotations

import pytest

from harness.call import Form, FormError, check, made, names, parameters, parts, settled

FORM: Form = {"tuple": ["x", {"dict": {"w": "weights", "dim": {"param": "n"}}}, [1, 2.5, True], {"text": "mean"}]}
DTYPED: Form = {"fields": {"kind": {"param": "dtype"}, "nothing": {"none": True}}}


def test_a_form_is_made_into_the_value_that_it_describes() -> None:
    form = settled(FORM, {"n": 7})
    value = made(form, {"x": "X", "weights": "W"}, str.upper)
    assert value == ("X", {"w": "W", "dim": 7}, [1, 2.5, True], "mean")
    fields = made(settled(DTYPED, {"dtype": "float16"}), {}, str.upper)
    assert (fields.kind, fields.nothing) == ("FLOAT16", None)


def test_the_parts_of_a_value_are_those_that_made_it() -> None:
    form = settled(FORM, {"n": 7})
    named = {"x": object(), "weights": object()}
    assert parts(made(form, named, str), form) == named
    assert (list(names(FORM)), list(parameters(FORM))) == (["x", "weights"], ["n"])


@pytest.mark.parametrize(
    ("value", "what"),
    [
        (3, "the result should be a tuple of 4, and is int"),
        (("x",), "the result should be a tuple of 4, and is 1 values"),
        (("x", {}, [1, 2.5, True], "mean"), r"the result\[1\] lacks 'w'"),
        (("x", 5, [1, 2.5, True], "mean"), r"the result\[1\] lacks 'w'"),
    ],
)
def test_a_value_of_another_form_is_refused_with_its_place(value: object, what: str) -> None:
    with pytest.raises(FormError, match=what):
        parts(value, FORM)


@pytest.mark.parametrize(
    "form",
    [None, {}, {"tuple": "x"}, {"a": 1, "b": 2}, {"none": False}, {"text": 3}, {"dict": ["x"]}, {"import": "os"}],
)
def test_what_is_not_a_form_is_refused(form: Form) -> None:
    with pytest.raises(FormError):
        check(form)


def test_a_form_has_bounds() -> None:
    deep: Form = "x"
    for _ in range(20):
        deep = [deep]
    with pytest.raises(FormError, match="deep"):
        check(deep)
    with pytest.raises(FormError, match="values"):
        check(["x"] * 20_000)
