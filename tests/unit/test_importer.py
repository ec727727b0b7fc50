"""What the importer finds out about code of other projects: its structure, its seeds, and whether its result is random.

Also where the runner puts what such code draws.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from harness.importer.drawn import fixed, seed_bits
from harness.importer.kernelbench import look
from harness.importer.loaded import ReferenceFiles
from harness.importer.numbered import check_result, folded
from harness.importer.values import Describer, ImportRefused, structure
from harness.runner.foreign import put

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
        "a gap", "from 1", "none in one case", "other shapes", "other dtypes", "other strides", "one tensor twice",
        "numbers", "leading zeros", "a key that means something else", "a list", "another kind",
    ],
)  # fmt: skip
def test_entries_with_different_numbering_are_not_folded(one: Any, other: Any) -> None:
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
        with pytest.raises(ImportRefused, match="its result holds a tensor of its data that is numbered"):
            check_result(describer.describe(given["layer.0.0.w"], "result"), tree, folded_tree)


SOURCE = """
import torch
class Model(torch.nn.Module):
    def __init__(self, p):
        super().__init__()
        self.dropout = torch.nn.Dropout(p)
    def forward(self, x):
        return {result}
def get_inputs():
    return [torch.rand(4, 8)]
def get_init_inputs():
    return [{p}]
"""


def looked(result: str, p: float) -> dict[str, Any]:
    files = ReferenceFiles({"reference.py": SOURCE.format(result=result, p=p)})
    return look({"devices": ["meta", "cpu"], "cases": [{}]}, files)


@pytest.mark.parametrize(
    ("result", "operator"),
    [
        ("torch.softmax(self.dropout(x), dim=1)", "(native_dropout|bernoulli)"),
        ("x + torch.randn_like(x)", "randn_like"),
        ("torch.nn.functional.gumbel_softmax(x)", "exponential"),
    ],
)
def test_a_random_result_is_refused(result: str, operator: str) -> None:
    with pytest.raises(ImportRefused, match=rf"its result is random: forward\(\) calls aten::{operator}"):
        looked(result, 0.2)


@pytest.mark.parametrize(
    ("result", "p"), [("self.dropout(x)", 0.0), ("self.dropout.eval()(x)", 0.2), ("x.sqrt()", 0.2)]
)
def test_a_deterministic_result_is_described(result: str, p: float) -> None:
    assert looked(result, p)["cases"][0]["result"]["tensor"]["shape"] == [4, 8]


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def plain(seed: int) -> Tensor:
    return torch.randn(512, generator=seeded(seed))


def in_rows(seed: int) -> Tensor:
    """Adds to the seed."""
    return torch.stack([plain(seed + row) for row in range(4)])


def shifted(seed: int) -> Tensor:
    """Adds the seed to values, of which float32 can tell few apart if it is large."""
    return plain(seed) + seed


def whole(seed: int) -> Tensor:
    return torch.randint(0, 1000, (64,), generator=seeded(seed)) + seed


def of_numpy(seed: int) -> Tensor:
    import numpy as np

    return torch.from_numpy(np.random.RandomState(seed).rand(64))


def half(seed: int) -> Tensor:
    """Too large for float16 with a large seed."""
    return torch.tensor([float(seed), 1.0, 2.0]).half()


def with_output(seed: int) -> tuple[Tensor, Tensor]:
    """Also allocates its output, in memory that held zeros once and random values the next time."""
    torch.zeros(512) if seed > 1 << 40 else torch.rand(512)
    return plain(seed), torch.empty(512)


def constant_with_output(seed: int) -> tuple[Tensor, Tensor]:
    torch.full((512,), float(seed))
    return torch.ones(3), torch.empty(512)


@pytest.mark.parametrize(
    ("draw", "bits"), [(with_output, 62), (in_rows, 62), (whole, 62), (of_numpy, 31), (shifted, None), (half, None)]
)
def test_seeds_are_as_large_as_the_generator_bears(draw: Callable[[int], Any], bits: int | None) -> None:
    assert seed_bits(draw) == bits


@pytest.mark.parametrize(
    ("draw", "same"),
    [
        (lambda seed: (torch.ones(3), {"w": plain(42)}), True),
        (lambda seed: (torch.ones(3), {"w": plain(seed)}), False),
        (lambda seed: [random.Random(seed).random() * torch.ones(2)], False),
        (lambda seed: torch.full((2,), float("nan")), True),
        (constant_with_output, True),
    ],
)
def test_inputs_that_no_seed_changes_are_found(draw: Callable[[int], Any], same: bool) -> None:
    assert fixed(draw) is same


def test_drawn_tensors_are_copied_to_where_a_call_finds_them() -> None:
    one, members = torch.zeros(3), [torch.zeros(2), torch.zeros(4)]
    put("x", torch.ones(3), one)
    put("w", (torch.ones(2), torch.ones(4)), members)
    assert [tensor.tolist() for tensor in (one, *members)] == [[1.0] * 3, [1.0] * 2, [1.0] * 4]


@pytest.mark.parametrize(
    ("drawn", "tensors", "message"),
    [
        ([torch.ones(2)] * 3, [torch.zeros(2)] * 2, "made 3 values for `w`, which is a list of 2 tensors"),
        (torch.ones(2), [torch.zeros(2)] * 2, "made Tensor for `w`, which is a list of 2 tensors"),
        ([torch.ones(2), 3.0], [torch.zeros(2)] * 2, "made float for `w`, which is torch.float32 [2]"),
        (torch.ones(3), torch.zeros(2), "made torch.float32 [3] for `w`, which is torch.float32 [2]"),
        (torch.ones(2).double(), torch.zeros(2), "made torch.float64 [2] for `w`, which is torch.float32 [2]"),
    ],
)
def test_drawn_values_must_fit_the_problem(drawn: Any, tensors: Tensor | list[Tensor], message: str) -> None:
    with pytest.raises(TypeError) as refused:
        put("w", drawn, tensors)
    assert str(refused.value) == f"the reference {message}"
