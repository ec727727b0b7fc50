"""Forms: what a call's arguments and result are made of."""

from __future__ import annotations

import pytest

from harness.shared.call import (
    Form,
    FormError,
    check,
    made,
    names,
    numbered,
    parameters,
    parts,
    places,
    settled,
    written,
)

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


NUMBERED: Form = {"dict": {"first": "x", "e{index}.0": "up", "e{index}.1": "down", "n": {"param": "n"}}}
LISTS = {"x": "X", "up": ["U0", "U1"], "down": ["D0", "D1", "D2"]}


def test_a_key_with_index_stands_for_an_entry_for_each_member_of_a_list() -> None:
    form = settled(NUMBERED, {"n": 7}, {"alpha": 0.5})
    value = made(form, LISTS, str)
    entries = [("e0.0", "U0"), ("e0.1", "D0"), ("e1.0", "U1"), ("e1.1", "D1"), ("e2.1", "D2")]
    assert [*value.items()] == [("first", "X"), *entries, ("n", 7)]
    assert parts(dict(reversed(value.items())), form) == LISTS
    assert list(names(NUMBERED)) == ["x", "up", "down"]
    assert list(numbered([NUMBERED])) == [("e{index}.0", "up"), ("e{index}.1", "down")]


def test_an_entry_with_index_is_python_too() -> None:
    value = {"{a}'0": 1, "{a}'1": 2}
    assert eval(written({"dict": {"{a}'{index}": "x"}}), {"x": [1, 2]}) == value  # noqa: S307  # our own text
    [(name, place)] = places({"dict": {"{a}'{index}": "x"}}, "data")
    assert name == "x"
    assert eval(place, {"data": value | {"other": 3}}) == [1, 2]  # noqa: S307


def test_the_places_of_names_and_parameters_are_python() -> None:
    form = {"tuple": ["x", {"dict": {"w": ["y", 3]}}, {"fields": {"n": {"param": "n"}, "a b": "z"}}, {"text": "t"}]}
    assert dict(places(form, "data")) == {
        "x": "data[0]",
        "y": "data[1]['w'][0]",
        "n": "data[2].n",
        "z": "getattr(data[2], 'a b')",
    }


@pytest.mark.parametrize(
    ("form", "value", "what"),
    [
        ({"dict": {"w{index}": "x"}}, {"w01": 1, "other": 2}, "the result lacks 'w0'"),
        ({"dict": {"w{index}": "x"}}, {"w0": 1, "w2": 2}, "the result lacks 'w1'"),
        ({"dict": {"w{index}": "x"}}, [1], "the result lacks 'w0'"),
        (FORM, 3, "the result should be a tuple of 4, and is int"),
        (FORM, ("x",), "the result should be a tuple of 4, and is 1 values"),
        (FORM, ("x", {}, [1, 2.5, True], "mean"), r"the result\[1\] lacks 'w'"),
    ],
)
def test_a_value_of_another_form_is_refused_with_its_place(form: Form, value: object, what: str) -> None:
    with pytest.raises(FormError, match=what):
        parts(value, form)


@pytest.mark.parametrize(
    "form",
    [None, {}, {"tuple": "x"}, {"a": 1, "b": 2}, {"none": False}, {"text": 3}, {"import": "os"},
     {"dict": {"{index}": 3}}],
)  # fmt: skip
def test_what_is_not_a_form_is_refused(form: Form) -> None:
    with pytest.raises(FormError):
        check(form)


def test_an_absurd_number_in_a_key_is_a_key_like_any_other() -> None:
    huge = "w" + "1" * 5000  # more digits than int() takes
    with pytest.raises(FormError, match="both name the entry"):
        check({"dict": {"w{index}": "x", huge: 3}})
    assert parts({"w0": 1, "w01": 2, "w1": 3}, {"dict": {"w{index}": "x"}}) == {"x": [1, 3]}
    assert parts({"0.0": 1, "1.1": 2, "0.1": 3}, {"dict": {"{index}.{index}": "x"}}) == {"x": [1, 2]}


def test_a_form_has_bounds() -> None:
    deep: Form = "x"
    for _ in range(20):
        deep = [deep]
    with pytest.raises(FormError, match="deep"):
        check(deep)
    with pytest.raises(FormError, match="values"):
        check(["x"] * 20_000)
