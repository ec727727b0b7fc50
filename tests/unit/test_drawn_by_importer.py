"""What the importer finds out about seeds: whether they change the inputs, and how large they may be."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from harness.importer.drawn import fixed, seed_bits


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
