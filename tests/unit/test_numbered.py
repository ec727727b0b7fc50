"""Entries of dicts that are folded, so that data with more of them in some cases has one structure."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from harness.importer.numbered import check_result, folded
from harness.importer.values import Describer, Refusal, structure

X = torch.zeros(3)


def described(*values: Any) -> list[dict[str, Any]]:
    return [Describer().describe(value) for value in values]


def weights(numbers: list[int], *shape: int) -> dict[str, torch.Tensor]:
    return {f"layer.{number}.{part}.w": torch.zeros(shape) for number in numbers for part in (0, 1)}


def same_structure(*values: Any) -> bool:
    first, *others = map(structure, folded(described(*values)))
    return all(other == first for other in others)


def test_entries_are_folded_and_ids_are_the_same_in_all_cases() -> None:
    for n, tree in zip(
        (2, 11),
        folded(
            described(*((X, {"first": X, **weights([*range(n)], n, 4), "last.0": torch.ones(n)}, n) for n in (2, 11)))
        ),
        strict=True,
    ):
        entries = tree["tuple"][1]["dict"]
        assert [*entries] == ["first", "layer.{index}.0.w", "layer.{index}.1.w", "last.0"]
        ids = ["data/0", "data/1/layer.0.0.w", "data/1/layer.0.1.w", "data/1/last.0"]
        assert [entry["tensor"]["id"] for entry in entries.values()] == ids
        folded_entry = {"id": ids[1], "dtype": "float32", "shape": [n, 4], "strides": [4, 1], "count": n}
        assert entries["layer.{index}.0.w"]["tensor"] == folded_entry


def test_the_first_number_of_a_key_whose_entries_are_alike_counts() -> None:
    one, other = ({f"2.{n}.w": torch.zeros(3) for n in range(count)} for count in (2, 5))
    tables = [tree["dict"] for tree in folded(described(one, other))]
    assert [[*table] for table in tables] == [["2.{index}.w"]] * 2


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (weights([0, 1, 2], 3), weights([0, 2], 3)),
        (weights([1, 2], 3), weights([1], 3)),
        (weights([0, 1], 3), {}),
        ({"w0": torch.zeros(2), "w1": torch.zeros(3)}, {"w0": torch.zeros(2)}),
        ({"w0": torch.zeros(2), "w1": torch.zeros(2, dtype=torch.int8)}, {"w0": torch.zeros(2)}),
        ({"w0": torch.zeros(2, 3), "w1": torch.zeros(3, 2).t()}, {"w0": torch.zeros(2, 3)}),
        ({"w0": X, "w1": X}, {"w0": X}),
        ({"w0": 1, "w1": 2}, {"w0": 1}),
        ({"w00": torch.zeros(3), "w01": torch.zeros(3)}, {"w00": torch.zeros(3)}),
        ({"w0": torch.zeros(3), "w1": torch.zeros(3), "{index}": 1}, {"w0": torch.zeros(3), "{index}": 1}),
        ([torch.zeros(3), torch.zeros(3)], [torch.zeros(3)]),
        ((X, 1), [X, 1]),
    ],
    ids=[
        "a gap",
        "from 1",
        "none in one case",
        "other shapes",
        "other dtypes",
        "other strides",
        "one tensor twice",
        "numbers",
        "leading zeros",
        "a key that means something else",
        "a list",
        "another kind",
    ],
)
def test_what_is_not_numbered_alike_stays_different(one: Any, other: Any) -> None:
    assert not same_structure(one, other)


def test_entries_of_the_same_number_in_all_cases_stay() -> None:
    seen = described(*({"fixed0": torch.zeros(3), "fixed1": torch.zeros(3), **weights([*range(n)], 2)} for n in (1, 2)))
    assert [*folded(seen)[0]["dict"]][:2] == ["fixed0", "fixed1"]


def test_a_member_that_is_returned_is_refused() -> None:
    data = [{**weights([*range(n)], 3), "fixed": X} for n in (1, 2)]
    describers = [Describer(), Describer()]
    trees = [describer.describe(value) for describer, value in zip(describers, data, strict=True)]
    for describer, given, tree, folded_tree in zip(describers, data, trees, folded(trees), strict=True):
        check_result(describer.describe([given["fixed"], X + 1], "result"), tree, folded_tree)
        with pytest.raises(Refusal, match="its result holds a tensor of its data that is numbered"):
            check_result(describer.describe(given["layer.0.0.w"], "result"), tree, folded_tree)
