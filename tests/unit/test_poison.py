"""What an output holds before a call never passes for what a kernel computed."""

from __future__ import annotations

import random

import pytest
import torch

from harness.compare import check_output
from harness.judge.correctness.arenas import poison
from harness.problem.dtypes import DTYPES
from harness.problem.elements import widened
from harness.problem.tolerance import Tolerance

_WITHOUT_LARGE_VALUES = {"float8_e8m0fnu", "float4_e2m1fn_x2"}
_FLOATS = [name for name in DTYPES if getattr(torch, name).is_floating_point and name not in _WITHOUT_LARGE_VALUES]


@pytest.mark.parametrize("name", _FLOATS)
def test_no_float_is_small(name: str) -> None:
    rng = random.Random(name)
    held = widened(torch.stack([poison(rng.randbytes(16)) for _ in range(2000)]).view(getattr(torch, name)))
    assert not (held.abs() < 16).any()
    assert held.isfinite().any()


def test_a_single_unwritten_element_is_never_right() -> None:
    truth = torch.tensor([0.05], dtype=torch.float64)
    honest = truth.bfloat16()
    loose = Tolerance(rtol=0.05, atol=0.1)
    rng = random.Random(0)
    for _ in range(500):
        held = poison(rng.randbytes(16)).view(torch.bfloat16)[:1]
        assert not check_output("y", held, truth, honest, loose, held).correct
    assert check_output("y", honest, truth, honest, loose, held).correct


def test_patterns_differ_in_every_byte() -> None:
    rng = random.Random(1)
    seen = torch.stack([poison(rng.randbytes(16)) for _ in range(2000)])
    assert all(len(seen[:, byte].unique()) == 64 for byte in range(16))
