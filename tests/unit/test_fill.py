"""Fills: distributions, every dtype and reproducibility from the generator; and what outputs hold before a call."""

from __future__ import annotations

import random

import pytest
import torch

from harness.compare import check_output
from harness.device import DEVICES
from harness.judge.correctness.arenas import poison
from harness.problem.dtypes import DTYPES
from harness.problem.elements import numbers, widened
from harness.problem.fill import fill
from harness.problem.fill_spec import Fill
from harness.problem.tolerance import Tolerance

_FLOATS = [name for name, info in DTYPES.items() if info.family == "float"]
_COMPUTED = [name for name in DTYPES if DTYPES[name].family in ("float", "complex", "packed")]
_FILLS = {
    "normal": Fill(kind="normal", mean=1.0, scale=2.0),
    "uniform": Fill(kind="uniform", low=-3.0, high=5.0),
    "integers": Fill(kind="integers", low=0, high=1),
    "choice": Fill(kind="choice", values=(0, 2, 1)),
    "powers": Fill(kind="powers", low=0, high=1),
    "zeros": Fill(kind="zeros"),
}


def _fits(dtype: str, kind: str) -> bool:
    family = DTYPES[dtype].family
    if family == "scale":
        return kind == "powers"
    return dtype in _COMPUTED or kind in ("integers", "zeros") or (kind == "choice" and family == "integer")


def _filled(dtype: str, how: Fill, seed: int = 0, shape: tuple[int, ...] = (100, 200)) -> torch.Tensor:
    tensor = torch.empty(shape, dtype=getattr(torch, dtype))
    fill(tensor, how, DEVICES["cpu"].generator(seed))
    return tensor


def test_every_bit_of_a_seed_counts() -> None:
    first = _filled("float32", _FILLS["normal"], seed := 0x1234_5678_9ABC_DEF0)
    others = [_filled("float32", _FILLS["normal"], seed ^ (1 << bit)) for bit in range(63)]
    assert torch.equal(first, _filled("float32", _FILLS["normal"], seed))
    assert not any((first == other).float().mean() > 0.01 for other in others)


def test_the_numbers_of_a_seeded_generator_are_spread_as_they_should_be() -> None:
    drawn = torch.stack([torch.rand(1000, generator=DEVICES["cpu"].generator(seed)) for seed in range(1000)]).double()
    for each in (drawn, drawn[:, 0], drawn[0], drawn.diff(dim=0).abs()[:, 0]):  # also from one seed to the next
        expected = 1 / 3 if each.shape == (999,) else 0.5
        assert abs(float(each.mean()) - expected) < 5 * float(each.std()) / each.numel() ** 0.5


@pytest.mark.parametrize(
    ("dtype", "kind"),
    [(d, k) for d in DTYPES for k in _FILLS if _fits(d, k)],
)
def test_the_generator_decides_every_element(dtype: str, kind: str) -> None:
    first, again, other = (numbers(_filled(dtype, _FILLS[kind], seed)).double() for seed in (1, 1, 2))
    assert torch.equal(first, again)
    assert torch.equal(first, other) == (kind == "zeros")


@pytest.mark.parametrize("dtype", _COMPUTED)
@pytest.mark.parametrize(("kind", "std"), [("normal", 2.0), ("uniform", 8 / 12**0.5)])
def test_a_distribution_has_its_mean_and_deviation(dtype: str, kind: str, std: float) -> None:
    values = numbers(_filled(dtype, _FILLS[kind])).double()
    assert values.mean().item() == pytest.approx(1.0, abs=0.1)
    assert values.std().item() == pytest.approx(std, abs=0.1)
    assert kind == "normal" or -3.0 <= values.min().item() <= values.max().item() <= 5.0


@pytest.mark.parametrize(
    ("dtype", "low", "high"),
    [
        ("int8", -128, 127),
        ("uint8", 0, 255),
        ("bool", 0, 1),
        ("int64", 2**62, 2**62 + 2),
        ("float8_e4m3fn", -16, 16),
        ("float8_e5m2", -8, 8),
        ("float4_e2m1fn_x2", -4, 4),
        ("complex64", -3, 5),
        ("uint16", 0, 2**16 - 1),
        ("uint32", 2**32 - 3, 2**32 - 1),
        ("bfloat16", -256, -250),
        ("float32", 2**24 - 3, 2**24),
    ],
)
def test_integers_reach_both_ends(dtype: str, low: int, high: int) -> None:
    shape = (1000, 400) if dtype == "uint16" else (100, 200)
    values = numbers(_filled(dtype, Fill(kind="integers", low=low, high=high), shape=shape)).to(torch.int64)
    assert values.min().item() == low
    assert values.max().item() == high


@pytest.mark.parametrize("dtype", [name for name in DTYPES if name != "bool"])
def test_a_choice_draws_all_of_its_values_and_no_others(dtype: str) -> None:
    values = numbers(_filled(dtype, Fill(kind="choice", values=(4, 1, 2)))).double()
    drawn, counts = values.unique(return_counts=True)
    assert drawn.tolist() == [0, 1, 2] if DTYPES[dtype].family == "scale" else [1, 2, 4]
    assert counts.double().tolist() == pytest.approx([values.numel() / 3] * 3, rel=0.05)


@pytest.mark.parametrize("dtype", [name for name in DTYPES if _fits(name, "powers")])
def test_powers_are_drawn_by_their_exponents(dtype: str) -> None:
    low, high = (0, 2) if DTYPES[dtype].family == "packed" else (DTYPES[dtype].least_exponent, 3)
    values = numbers(_filled(dtype, Fill(kind="powers", low=low, high=high)))
    exponents = values.double() if DTYPES[dtype].family == "scale" else values.double().log2()
    assert exponents.unique().tolist() == list(range(low, high + 1))


@pytest.mark.parametrize("shape", [(), (0,), (3, 0)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_single_numbers_and_tensors_without_elements_are_filled(dtype: str, shape: tuple[int, ...]) -> None:
    kind = "powers" if DTYPES[dtype].family == "scale" else "integers"
    values = numbers(_filled(dtype, Fill(kind=kind, low=1, high=1), shape=shape))  # type: ignore[arg-type]
    assert (values == 1).all()


@pytest.mark.parametrize("dtype", [name for name in _FLOATS if DTYPES[name].infinities])
@pytest.mark.parametrize("fraction", [0.1, 1.0])
def test_minus_infinity_takes_its_fraction(dtype: str, fraction: float) -> None:
    values = _filled(dtype, Fill(kind="zeros", neg_inf=fraction)).double()
    assert (values == -torch.inf).double().mean().item() == pytest.approx(fraction, abs=0.01)
    assert (values[values != -torch.inf] == 0).all()


@pytest.mark.parametrize(("dtype", "scale"), [("float8_e4m3fn", 400.0), ("float8_e5m2", 5e4)])
def test_float8_never_overflows(dtype: str, scale: float) -> None:
    assert _filled(dtype, Fill(kind="normal", scale=scale)).float().isfinite().all()


def test_pieces_join_up_and_only_the_tensor_is_written() -> None:
    """More elements than are drawn at once: the last ones are filled too, and differ from the first."""
    piece, memory = 1 << 20, torch.zeros((1 << 22) + 205, dtype=torch.float8_e4m3fn)
    fill(memory[100:-100], Fill(kind="uniform", low=1.0, high=2.0), torch.Generator())
    values = memory[100:-100].float()
    assert values.min().item() >= 1.0
    assert not torch.equal(values[:piece], values[piece : 2 * piece])
    assert not memory[:100].float().any()
    assert not memory[-100:].float().any()


# ---- what outputs hold before a call

_WITHOUT_LARGE_VALUES = {"float8_e8m0fnu", "float4_e2m1fn_x2"}
_WIDE_FLOATS = [name for name in DTYPES if getattr(torch, name).is_floating_point and name not in _WITHOUT_LARGE_VALUES]


@pytest.mark.parametrize("name", _WIDE_FLOATS)
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
