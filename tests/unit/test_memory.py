"""How much memory the judge takes beside the tensors that it compares and times, counted on the CPU."""

from __future__ import annotations

import pytest
import torch

from harness.compare import check, is_close, passes_fast_check
from harness.problem.spec import Tolerance
from tests.live_bytes import LiveBytes


@pytest.mark.parametrize("most", [5, 96, 1 << 24], ids=["parts of rows", "rows", "all at once"])
@pytest.mark.parametrize("shape", [(1000,), (10, 100), (4, 5, 50)], ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float16", "float8_e4m3fn", "complex64", "int32"])
def test_the_fast_check_decides_the_same_in_blocks_of_any_size(
    dtype: str, shape: tuple[int, ...], most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check, "_FAST_ELEMENTS", most)
    kind = getattr(torch, dtype)
    drawn = torch.randn(shape, dtype=torch.complex128 if kind.is_complex else torch.float64)
    drawn.view(-1)[17] = 200.0  # far above the rest of its row
    got = (drawn * 100).to(kind) if kind is torch.int32 else drawn.to(kind)
    truth = got.clone() if kind is torch.int32 else got.to(drawn.dtype)
    tolerance = Tolerance()
    assert passes_fast_check(got, truth, tolerance)
    for place in (0, 499, 999):
        wrong = got.clone().view(-1)
        wrong[place] = -150
        assert not passes_fast_check(wrong.view(shape), truth, tolerance)
        if kind is not torch.int32:
            wrong[place] = float("nan")
            assert not passes_fast_check(wrong.view(shape), truth, tolerance)


@pytest.mark.parametrize("rtol", [None, 1e-4], ids=["budget", "fixed tolerance"])
@pytest.mark.parametrize("shape", [(1 << 20,), (1 << 10, 1 << 10)], ids=str)
def test_the_fast_check_takes_little_memory_beside_what_it_compares(
    shape: tuple[int, ...], rtol: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check, "_FAST_ELEMENTS", 1 << 12)
    monkeypatch.setattr(check, "BLOCK_ELEMENTS", 1 << 12)
    tolerance = Tolerance() if rtol is None else Tolerance(rtol=rtol, atol=rtol)
    truth = torch.randn(shape, dtype=torch.float64)
    got = truth.float()
    with LiveBytes() as live:
        assert (passes_fast_check if rtol is None else is_close)(got, truth, tolerance)
    assert live.peak < got.nbytes // 4, "a copy of the output would be all of it"
