"""Inputs that foreign code draws: what the importer finds out about its seeds, and where the runner puts them."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from harness.importer.drawn import fixed, seed_bits
from harness.runner.foreign import put


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


@pytest.mark.parametrize(("draw", "bits"), [(in_rows, 62), (whole, 62), (of_numpy, 31), (shifted, None), (half, None)])
def test_seeds_are_as_large_as_the_generator_bears(draw: Callable[[int], Any], bits: int | None) -> None:
    assert seed_bits(draw) == bits


@pytest.mark.parametrize(
    ("draw", "same"),
    [
        (lambda seed: (torch.ones(3), {"w": plain(42)}), True),
        (lambda seed: (torch.ones(3), {"w": plain(seed)}), False),
        (lambda seed: [random.Random(seed).random() * torch.ones(2)], False),
        (lambda seed: torch.full((2,), float("nan")), True),
    ],
)
def test_inputs_that_no_seed_changes_are_found(draw: Callable[[int], Any], same: bool) -> None:
    assert fixed(draw) is same


def test_it_is_copied_to_where_a_call_finds_it() -> None:
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
def test_what_the_problem_does_not_say_is_refused(drawn: Any, tensors: Tensor | list[Tensor], message: str) -> None:
    with pytest.raises(TypeError) as refused:
        put("w", drawn, tensors)
    assert str(refused.value) == f"the reference {message}"
