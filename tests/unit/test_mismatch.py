"""The record of a wrong output; each hint is tested with errors that show it and with errors that do not."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import pytest
import torch
from torch import Tensor

from harness.compare import check_output, describe
from harness.problem.tolerance import Tolerance
from harness.verdict import Budget, Mismatch, OutputCheck

NAN = float("nan")


@pytest.fixture(autouse=True, scope="module")
def _one_thread() -> Iterator[None]:
    # Small tensors gain nothing by threads, and on a busy machine these wait for each other.
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def truth_of(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(11)).double()


def mismatch(got: Tensor, truth: Tensor, poison: Tensor | None = None) -> Mismatch:
    result = check_output("y", got, truth, truth.to(got.dtype), Tolerance(), poison)
    assert result.mismatch is not None, "this output should be wrong"
    return result.mismatch


def test_the_record_counts_and_shows_the_first_and_the_worst_elements() -> None:
    truth = truth_of(4, 50)
    got = truth.float()
    got[1, 3:15] += 0.5
    got[2, 40] += 9
    got[3, 1], got[3, 2] = NAN, float("-inf")
    found = mismatch(got, truth)
    assert (found.wrong, found.total, found.percent) == (15, 200, 7.5)
    assert (found.shape, found.dtype) == ((4, 50), "float32")
    assert (found.nan_got, found.nan_expected, found.inf_got, found.inf_expected) == (1, 0, 1, 0)
    assert [bad.index for bad in found.first] == [(1, column) for column in range(3, 11)]
    assert found.first[0].error == "0.5"
    assert float(found.first[0].got) - float(found.first[0].expected) == pytest.approx(0.5)
    assert found.worst_index == (3, 1)
    got[3, 1], got[3, 2] = truth[3, 1], truth[3, 2]
    assert mismatch(got, truth).worst_index == (2, 40)


def test_expected_infinities_are_those_of_the_outputs_dtype() -> None:
    truth = truth_of(4, 50)
    truth[1, 1] = 1e6
    got = truth.half()
    got[1, 1] = 65504
    found = mismatch(got, truth)
    assert (found.inf_got, found.inf_expected, found.wrong) == (0, 1, 1)
    assert (found.first[0].got, found.first[0].expected, found.first[0].error) == ("65504", "inf", "inf")


def test_a_loss_that_only_the_rms_sees_counts_the_elements_beyond_the_references_own_maximum() -> None:
    truth = truth_of(64, 64)
    got = (truth * (1 + 40 * torch.finfo(torch.float32).eps)).float()
    honest = (truth * (1 + 2 * torch.finfo(torch.float32).eps)).float()
    result = check_output("y", got, truth, honest, Tolerance())
    assert result.max_error.met
    scale = truth.abs().maximum(truth.square().mean(-1, keepdim=True).sqrt())
    beyond = ((got - truth).abs() / scale > result.max_error.reference_error).sum()
    assert 3000 < result.mismatch.wrong == beyond < 4096
    assert result.mismatch.hints[0].startswith("systematic loss of precision: a relative RMS error of 4.8e-06")


# --- hints: what is done to a right output, and the beginning of the hint; None: nothing that any hint explains ------


def _unwritten(got: Tensor, poison: Tensor) -> Tensor:
    return poison.clone()


def _half_unwritten(got: Tensor, poison: Tensor) -> Tensor:
    got[32:] = poison[32:]
    return got


def _changed(place: tuple[slice | int, ...], change: Callable[[Tensor], Tensor]) -> Callable[[Tensor, Tensor], Tensor]:
    def make(got: Tensor, poison: Tensor) -> Tensor:
        got[place] = change(got[place])
        return got

    return make


ALL, TAIL = slice(None), slice(48, None)
HINTS = {
    "output never written": _unwritten,
    "output never written in 3,200 of 6,400 elements": _half_unwritten,
    "output is all zeros": lambda got, poison: torch.zeros_like(got),
    "NaN where the truth is finite, in 3 elements": _changed((7, slice(0, 3)), lambda x: x * NAN),
    "only the last tile is wrong: columns 90 to 99 (axis 1)": _changed((ALL, slice(90, None)), lambda x: x + 1),
    "only the last tile is wrong: rows 48 to 63 (axis 0)": _changed((TAIL, ALL), lambda x: -x),
    "wrong elements begin at row 48 = 3 × 16": _changed((TAIL, ALL), lambda x: -x),
    "wrong elements begin at column 64 = 1 × 64": _changed((5, slice(64, 70)), lambda x: x + 1),
    "looks transposed": lambda got, poison: got.T.contiguous().view(64, 100),
    "constant factor 2.000": lambda got, poison: 2 * got,
    "constant factor -1.000": lambda got, poison: -got,
    "looks like lower precision (TF32 or float16)": lambda got, poison: got.half().float(),
    "looks like lower precision (bfloat16)": lambda got, poison: got.bfloat16().float(),
    "looks like lower precision (float8)": lambda got, poison: got.to(torch.float8_e4m3fn).float(),
    "systematic loss of precision": lambda got, poison: (
        got * (1 + 3e-6 * torch.randn(64, 100, generator=torch.Generator().manual_seed(1)).clamp(-2, 2))
    ),
}


def hints_of(make: Callable[[Tensor, Tensor], Tensor]) -> tuple[str, ...]:
    truth = truth_of(64, 100)
    # A NaN with a payload: arithmetic does not make this one.
    poison = torch.full((64, 100), 0x7FE5A5A5, dtype=torch.int32).view(torch.float32)
    return mismatch(make(truth.float(), poison), truth, poison).hints


@pytest.mark.parametrize("hint", HINTS)
def test_a_hint_names_what_happened(hint: str) -> None:
    assert any(found.startswith(hint) for found in hints_of(HINTS[hint])), hints_of(HINTS[hint])


# Those that two different mistakes share on purpose: a suffix that begins at a tile, never written or negated.
SHARED = {frozenset({"only the last tile is wrong: rows 48 to 63 (axis 0)", "wrong elements begin at row 48 = 3 × 16"})}


@pytest.mark.parametrize("made", HINTS)
@pytest.mark.parametrize("hint", HINTS)
def test_a_hint_is_silent_about_every_other_mistake(made: str, hint: str) -> None:
    if made == hint or frozenset({made, hint}) in SHARED:
        return
    found = hints_of(HINTS[made])
    assert not any(said == hint or said.startswith((hint + ":", hint + " (")) for said in found), found


@pytest.mark.parametrize(
    "make",
    [
        _changed((ALL, slice(3, 91)), lambda x: x + torch.rand(64, 88, generator=torch.Generator().manual_seed(2))),
        lambda got, poison: torch.randn(64, 100, generator=torch.Generator().manual_seed(2)),
        lambda got, poison: torch.full((64, 100), 0.25),
        _changed((slice(1, 3), slice(1, 3)), lambda x: x * 1.01),
    ],
    ids=["noise in the middle", "other numbers", "a constant", "a small block"],
)
def test_an_unexplained_error_gets_no_hint(make: Callable[[Tensor, Tensor], Tensor]) -> None:
    assert hints_of(make) == ()


def test_transposition_is_seen_for_square_wide_and_batched_outputs_in_both_directions() -> None:
    for shape in ((32, 32), (16, 48), (5, 20, 30)):
        truth = truth_of(*shape)
        written = truth.mT.contiguous().view(shape).float()
        read = truth.reshape(*shape[:-2], shape[-1], shape[-2]).mT.contiguous().float()
        assert "looks transposed" in mismatch(written, truth).hints
        assert "looks transposed" in mismatch(read, truth).hints
    symmetric = truth_of(32, 32) + truth_of(32, 32).T
    assert "looks transposed" not in mismatch(3 * symmetric.T.float(), symmetric).hints


def test_a_loss_below_every_format_is_called_a_loss_of_precision() -> None:
    noise = torch.randn(64, 100, generator=torch.Generator().manual_seed(1)).double()
    truth = truth_of(64, 100)
    assert mismatch((truth * (1 + 1e-5 * noise)).float(), truth).hints == (
        "systematic loss of precision: a relative RMS error of 1.0e-05 in every part of the output",
    )
    tile = truth.float()
    tile[:8, :8] *= 1.0001
    assert not any("precision" in hint for hint in mismatch(tile, truth).hints)


def test_tile_boundaries_are_named_with_the_tile() -> None:
    truth = truth_of(3, 1300)
    for first, hint in ((1024, "column 1024 = 8 × 128"), (64, "column 64 = 1 × 64"), (1000, None), (0, None)):
        got = truth.float()
        got[1, first : first + 5] += 1
        begins = [found for found in mismatch(got, truth).hints if found.startswith("wrong elements begin at column")]
        assert begins == ([] if hint is None else [f"wrong elements begin at {hint}"])


def test_a_suffix_in_a_flat_output_is_the_last_tile_and_a_prefix_is_not() -> None:
    truth = truth_of(100_000)
    tail, head = truth.float(), truth.float()
    tail[99_328:] = 7
    head[:672] = 7
    assert mismatch(tail, truth).hints == (
        "only the last tile is wrong: elements 99328 to 99999 (axis 0)",
        "wrong elements begin at element 99328 = 776 × 128",
    )
    assert mismatch(head, truth).hints == ()


def test_a_lower_precision_in_a_half_precision_problem_is_named_but_not_its_own() -> None:
    truth = truth_of(64, 64).half().double()
    assert mismatch(truth.bfloat16().half(), truth).hints[0].startswith("looks like lower precision (bfloat16)")
    off = (truth * (1 + 2e-3 * torch.sign(truth_of(64, 64)))).bfloat16()
    found = mismatch((off.double() * 1.1).bfloat16(), truth)
    assert not any("bfloat16" in hint for hint in found.hints)


def test_integers_that_were_not_written_or_hold_a_multiple_are_explained_too() -> None:
    truth = torch.arange(1, 61).view(6, 10)
    assert mismatch(torch.full_like(truth, -77), truth, poison=torch.full_like(truth, -77)).hints == (
        "output never written",
    )
    assert mismatch(2 * truth, truth).hints[0].startswith("constant factor 2.000:")
    assert mismatch(torch.zeros_like(truth), truth).hints == ("output is all zeros",)


def test_an_error_of_exactly_one_everywhere_is_an_offset_and_no_lower_precision() -> None:
    truth = 20 * truth_of(64, 64)
    [hint, *_] = mismatch(truth + 1, truth).hints
    assert hint == "constant offset 1.000: got ≈ expected + 1.000"
    rounded = mismatch(truth.float().to(torch.float8_e4m3fn).float(), truth).hints
    assert any("float8" in hint for hint in rounded)


def test_unwritten_elements_are_reported_without_their_random_bytes() -> None:
    truth = truth_of(4, 50)
    truth[:, ::2] = 0
    poison = torch.full((4, 50), 1e-12)
    check = check_output("y", poison.clone(), truth, truth.float(), Tolerance(), poison)
    found = check.mismatch
    assert (found.wrong, found.whole, found.first, found.worst_index) == (100, "unwritten", (), None)
    assert found.hints == ("output never written",)
    assert describe(check) == "y: never written"
    poison[0, 1] = 7
    partly = check_output("y", torch.full((4, 50), 1e-12), truth, truth.float(), Tolerance(), poison)
    assert partly.mismatch.whole is None
    assert partly.mismatch.first


def test_an_output_of_zeros_is_reported_as_that() -> None:
    truth = truth_of(4, 50)
    check = check_output("y", torch.zeros(4, 50), truth, truth.float(), Tolerance(), torch.full((4, 50), 7.0))
    assert describe(check) == "y: all zeros"
    assert (check.mismatch.whole, len(check.mismatch.first)) == ("zeros", 8)


def test_a_bool_that_equals_its_poison_by_chance_is_not_called_unwritten() -> None:
    truth = torch.arange(60) % 3 == 0
    got = truth.clone()
    got[::3] = False
    got[1] = True
    assert not any("never written" in hint for hint in mismatch(got, truth, poison=torch.zeros_like(got)).hints)


# --- what a terminal shows ------------------------------------------------------------------------------------------


def _budget(error: float, allowed: float, reference: float, floor: float) -> Budget:
    return Budget(error=error, allowed=allowed, reference_error=reference, factor=4, floor=floor)


EPS = 2**-23
FINE = _budget(1e-8, 16 * EPS, 1e-8, 16 * EPS)


@pytest.mark.parametrize(
    ("maximum", "rms", "line"),
    [
        (_budget(3.1e-7, 4.8e-7, 1.2e-7, 1e-7), FINE,
         "error 3.1e-07, allowed 4.8e-07 (4 × the reference's own in float32)"),
        (_budget(3.1e-7, 4 * EPS, 1e-8, 4 * EPS), FINE, "error 3.1e-07, allowed 4.8e-07 (4 ulps of float32)"),
        (_budget(3.1e-6, 19.9902 * EPS, 1e-8, 19.9902 * EPS), FINE,
         "error 3.1e-06, allowed 2.4e-06 (20 ulps of float32)"),
        (_budget(3.1e-7, 2.25 * EPS, 1e-8, 2.25 * EPS), FINE, "error 3.1e-07, allowed 2.7e-07 (2.2 ulps of float32)"),
        (FINE, _budget(1e-6, 16 * EPS, 1e-8, 16 * EPS), "RMS error 1e-06, allowed 1.9e-06 (16 ulps of float32)"),
        (_budget(0.4, 0.5, 0.3, 1e-7), FINE, "error 0.4, allowed 0.5 (never more than half of the value)"),
    ],
)  # fmt: skip
def test_a_check_is_described_by_its_tighter_metric(maximum: Budget, rms: Budget, line: str) -> None:
    check = OutputCheck(output="y", dtype="float32", correct=True, max_error=maximum, rms_error=rms)
    assert describe(check) == f"y: your relative {line}"


def test_wrong_outputs_are_described_by_why_they_are_wrong() -> None:
    truth = truth_of(4, 50)
    got = truth.float()
    got[1, 1] = NAN
    check = check_output("y", got, truth, truth.float(), Tolerance())
    assert describe(check) == "y: NaN (1 in yours, 0 expected), 1 of 200 elements wrong (0.5 %)"
    doubled = 2 * got
    check = check_output("y", doubled, truth, truth.float(), Tolerance())
    assert describe(check) == "y: NaN (1 in yours, 0 expected), 200 of 200 elements wrong (100 %)"
    assert [hint.partition(" ")[0] for hint in check.mismatch.hints] == ["NaN", "constant"]
    got[1, 1] = math.inf
    check = check_output("y", got, truth, truth.float(), Tolerance())
    assert describe(check) == "y: NaN or infinity in the wrong place, 1 of 200 elements wrong (0.5 %)"
    got[1, 1] = truth[1, 1] + 1
    line = describe(check_output("y", got, truth, truth.float(), Tolerance()))
    assert line.startswith("y: your relative error ")
    assert line.endswith("allowed 7.6e-06 (64 ulps of float32), 1 of 200 elements wrong (0.5 %)")
    numbers = torch.arange(4)
    right, wrong = (check_output("n", numbers + off, numbers, numbers, Tolerance()) for off in (0, 1))
    assert describe(right) == "n: equal"
    assert describe(wrong) == "n: 4 of 4 elements wrong (100 %), but all must be equal"
