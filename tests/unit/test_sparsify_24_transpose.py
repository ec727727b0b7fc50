"""sparsify_24_transpose has the format of sparsify_24: both directions at once are what it makes of each."""

from __future__ import annotations

import pytest
import torch

from harness.problem.reference import Reference
from tests.shipped import problem

Tensors = dict[str, torch.Tensor]

BOTH, ONE = problem("sparsify_24_transpose"), problem("sparsify_24")


@pytest.fixture(scope="module")
def reference() -> Reference:
    return Reference.load(BOTH)


def matrix(rows: int, cols: int) -> torch.Tensor:
    """Small whole numbers and zeros of both signs: most groups have a tie."""
    generator = torch.Generator().manual_seed(1)
    return torch.randint(-3, 4, (rows, cols), generator=generator).bfloat16() * -1.0


def answer(reference: Reference, x: torch.Tensor) -> Tensors:
    case = BOTH.resolve(BOTH.tests[0].model_copy(update={"params": {**sizes(x), "dtype": "bfloat16"}}))
    return {name: value for name, value in reference({"x": x}, {}, case).items() if isinstance(value, torch.Tensor)}


def sizes(x: torch.Tensor) -> dict[str, int | str]:
    return {"rows": x.shape[0], "cols": x.shape[1]}


@pytest.mark.parametrize("transposed", [0, 1])
def test_each_direction_is_what_sparsify_24_makes_of_it(reference: Reference, transposed: int) -> None:
    x = matrix(24, 40)
    case = ONE.resolve(
        ONE.tests[0].model_copy(update={"params": {**sizes(x), "flip": transposed, "dtype": "bfloat16"}})
    )
    alone = Reference.load(ONE)({"x": x}, {"transposed": transposed}, case)
    both = answer(reference, x)
    for name in ("values", "indices"):
        right = alone[name]
        got = both[f"{name}_t" if transposed else name]
        assert got.shape == right.shape
        assert torch.equal(got.view(torch.uint8), right.view(torch.uint8))


@pytest.mark.parametrize("name", ["values", "indices", "values_t", "indices_t"])
def test_one_wrong_element_of_any_output_is_found(reference: Reference, name: str) -> None:
    tensors = {"x": matrix(16, 8)}
    got, truth = answer(reference, tensors["x"]), answer(reference, tensors["x"])
    assert reference.compare(got, tensors, truth) is None
    got[name][1, 0] += 1
    assert str(reference.compare(got, tensors, truth)).startswith(
        f"{name}: 1 of {got[name].numel()} wrong; {name}[1, 0] is "
    )


def test_the_sign_of_a_zero_counts(reference: Reference) -> None:
    tensors = {"x": torch.full((8, 8), -0.0, dtype=torch.bfloat16)}
    truth = answer(reference, tensors["x"])
    got = {**truth, "values_t": truth["values_t"].abs()}
    reason = reference.compare(got, tensors, truth)
    assert reason == "values_t: 32 of 32 wrong; values_t[0, 0] is 0.0, not -0.0"
