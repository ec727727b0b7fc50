"""What passes and what fails: the table of experiments behind the error budget, and the outputs that never pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from harness.compare import all_pass_fast_check, check_output, describe, passes_fast_check
from harness.compare import field as field_module
from harness.errors import HarnessError
from harness.problem.spec import Scale, Tolerance
from harness.verdict import OutputCheck

Kernel = Callable[..., Tensor]
F32, F16, BF16, F8 = torch.float32, torch.float16, torch.bfloat16, torch.float8_e4m3fn
EPS = torch.finfo(F32).eps


@pytest.fixture(autouse=True, scope="module")
def _one_thread() -> Iterator[None]:
    # Small tensors gain nothing by threads, and on a busy machine these wait for each other.
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def check(got: Tensor, truth: Tensor, honest: Tensor | None = None, poison: Tensor | None = None) -> OutputCheck:
    honest = truth.to(got.dtype) if honest is None else honest
    return check_output("y", got, truth, honest, Tolerance(), poison)


# --- the operations, as the reference computes them and in every other honest or dishonest way ---------------------


def add(x: Tensor, z: Tensor) -> Tensor:
    return x + z


def matmul(x: Tensor, z: Tensor) -> Tensor:
    return x @ z


def softmax(x: Tensor) -> Tensor:
    return x.softmax(-1)


def gelu(x: Tensor) -> Tensor:
    return torch.nn.functional.gelu(x, approximate="tanh")


def matmul_one_accumulator(x: Tensor, z: Tensor) -> Tensor:
    total = torch.zeros(x.shape[0], z.shape[1])
    for k in range(x.shape[1]):
        total += x[:, k : k + 1] * z[k]
    return total


def matmul_split_k(x: Tensor, z: Tensor) -> Tensor:
    parts = zip(x.split(37, 1), z.split(37, 0), strict=True)
    return torch.stack([a @ b for a, b in parts]).flip(0).sum(0)


def sum_one_accumulator(x: Tensor) -> Tensor:
    return x.cumsum(-1)[:, -1:]


def softmax_one_accumulator(x: Tensor) -> Tensor:
    terms = (x - x.amax(-1, keepdim=True)).exp()
    return terms / sum_one_accumulator(terms)


def two_ulps_off(x: Tensor) -> Tensor:
    noise = torch.randint(-2, 3, x.shape, generator=torch.Generator().manual_seed(5))
    return x * (1 + noise * torch.finfo(F32).eps)


def softmax_fast_exp(x: Tensor) -> Tensor:
    terms = two_ulps_off(((x - x.amax(-1, keepdim=True)) * 1.4426950408889634).exp2())
    return terms / terms.sum(-1, keepdim=True)


def softmax_online(x: Tensor) -> Tensor:
    peak, total = torch.full((x.shape[0], 1), -torch.inf), torch.zeros(x.shape[0], 1)
    for part in x.split(128, 1):
        higher = torch.maximum(peak, part.amax(-1, keepdim=True))
        total = total * (peak - higher).exp() + (part - higher).exp().sum(-1, keepdim=True)
        peak = higher
    return (x - peak).exp() / total


def gelu_by_sigmoid(x: Tensor) -> Tensor:
    """tanh through exp, as kernels without a tanh do it."""
    inner = 1.5957691216057308 * (x + 0.044715 * x * x * x)
    return x / (1 + two_ulps_off((-inner).exp()))


def tf32(x: Tensor) -> Tensor:
    bits = x.contiguous().view(torch.int32)
    return ((bits + 0x0FFF + ((bits >> 13) & 1)) & ~0x1FFF).view(F32)


def tf32_three_terms(x: Tensor, z: Tensor) -> Tensor:
    x_high, z_high = tf32(x), tf32(z)
    return tf32(x - x_high) @ z_high + x_high @ tf32(z - z_high) + x_high @ z_high


def in_dtype(kernel: Kernel, dtype: torch.dtype) -> Kernel:
    return lambda *xs: kernel(*(x.to(dtype) for x in xs)).to(xs[0].dtype)


def on_rounded(kernel: Kernel, rounding: Callable[[Tensor], Tensor]) -> Kernel:
    return lambda *xs: kernel(*(rounding(x).float() for x in xs)).to(xs[0].dtype)


def rounded_after(kernel: Kernel, dtype: torch.dtype) -> Kernel:
    return lambda *xs: kernel(*(x.float() for x in xs)).to(dtype).to(xs[0].dtype)


def stored_as(dtype: torch.dtype) -> Callable[[Tensor], Tensor]:
    return lambda x: x.to(dtype)


def normal(*shapes: tuple[int, ...], dtype: torch.dtype = F32, positive: bool = False) -> tuple[Tensor, ...]:
    generator = torch.Generator().manual_seed(3)
    draw = torch.rand if positive else torch.randn
    return tuple(draw(*shape, generator=generator).to(dtype) for shape in shapes)


def judge(reference: Kernel, kernel: Kernel, inputs: tuple[Tensor, ...]) -> OutputCheck:
    truth = reference(*(x.double() for x in inputs))
    return check(kernel(*inputs), truth, reference(*inputs))


MATRICES = {
    "1": ((1, 1), (1, 1)),
    "17": ((17, 17), (17, 17)),
    "256": ((96, 256), (256, 96)),
    "4096": ((48, 4096), (4096, 48)),
    "vector": ((512, 1024), (1024, 1)),
}
SHAPES = {"1": (1, 1), "7": (3, 7), "flat": (100_003,), "4096": (24, 4096)}
ROWS = {"1": (1, 1), "7": (3, 7), "1000": (40, 1000), "4096": (24, 4096)}


@pytest.mark.parametrize("positive", [False, True], ids=["signed", "positive"])
@pytest.mark.parametrize("shape", MATRICES)
@pytest.mark.parametrize("kernel", [matmul_one_accumulator, matmul_split_k, tf32_three_terms])
def test_any_order_of_a_float32_sum_passes(kernel: Kernel, shape: str, positive: bool) -> None:
    assert judge(matmul, kernel, normal(*MATRICES[shape], positive=positive)).correct


@pytest.mark.parametrize("shape", ROWS)
@pytest.mark.parametrize("kernel", [softmax_one_accumulator, softmax_fast_exp, softmax_online])
def test_any_honest_float32_softmax_passes(kernel: Kernel, shape: str) -> None:
    assert judge(softmax, kernel, normal(ROWS[shape])).correct


@pytest.mark.parametrize("shape", SHAPES)
def test_an_honest_float32_gelu_passes(shape: str) -> None:
    assert judge(gelu, gelu_by_sigmoid, normal(SHAPES[shape])).correct


@pytest.mark.parametrize("positive", [False, True], ids=["signed", "positive"])
@pytest.mark.parametrize("shape", MATRICES)
@pytest.mark.parametrize(
    "kernel",
    [on_rounded(matmul, tf32), in_dtype(matmul, F16), in_dtype(matmul, BF16), on_rounded(matmul, stored_as(F8))],
    ids=["tf32", "fp16", "bf16", "fp8"],
)
def test_a_lower_precision_fails_a_float32_matmul(kernel: Kernel, shape: str, positive: bool) -> None:
    assert not judge(matmul, kernel, normal(*MATRICES[shape], positive=positive)).correct


@pytest.mark.parametrize("dtype", [F16, BF16], ids=str)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("reference", [add, gelu])
def test_a_lower_precision_fails_float32_elementwise(reference: Kernel, shape: str, dtype: torch.dtype) -> None:
    inputs = normal(*[SHAPES[shape]] * (2 if reference is add else 1))
    assert not judge(reference, in_dtype(reference, dtype), inputs).correct
    assert not judge(reference, rounded_after(reference, dtype), inputs).correct
    assert not judge(reference, on_rounded(reference, tf32), inputs).correct


@pytest.mark.parametrize("dtype", [F16, BF16], ids=str)
@pytest.mark.parametrize("shape", ["7", "1000", "4096"])
def test_a_lower_precision_fails_a_float32_softmax(shape: str, dtype: torch.dtype) -> None:
    assert not judge(softmax, in_dtype(softmax, dtype), normal(ROWS[shape])).correct
    assert not judge(softmax, rounded_after(softmax, dtype), normal(ROWS[shape])).correct


HALVES = [
    (add, ((64, 300), (64, 300))),
    (add, ((100_003,), (100_003,))),
    (gelu, ((64, 300),)),
    (softmax, ((20, 300),)),
    (softmax, ((16, 4096),)),
    (matmul, ((48, 17), (17, 48))),
    (matmul, ((96, 1024), (1024, 96))),
    (matmul, ((32, 4096), (4096, 32))),
    (matmul, ((512, 1024), (1024, 1))),
]
HALF_IDS = [f"{kernel.__name__}-{shapes[0]}" for kernel, shapes in HALVES]


@pytest.mark.parametrize(("reference", "shapes"), HALVES, ids=HALF_IDS)
@pytest.mark.parametrize("dtype", [F16, BF16], ids=str)
def test_float32_accumulation_passes_and_a_lower_precision_fails_a_half_precision_problem(
    reference: Kernel, shapes: tuple[tuple[int, ...], ...], dtype: torch.dtype
) -> None:
    inputs = normal(*shapes, dtype=dtype)
    assert judge(reference, on_rounded(reference, lambda x: x), inputs).correct
    lower = [F8] if dtype is BF16 else [F8, BF16]
    for low in lower:
        assert not judge(reference, on_rounded(reference, stored_as(low)), inputs).correct
        assert not judge(reference, rounded_after(reference, low), inputs).correct


def test_float32_in_a_float64_problem_fails_and_another_order_passes() -> None:
    x, z = (t.double() for t in normal((48, 1000), (1000, 48)))
    assert not check((x.float() @ z.float()).double(), x @ z).correct
    assert check(matmul_split_k(x, z), x @ z).correct
    assert check(1e200 * matmul_split_k(x, z), 1e200 * (x @ z)).correct
    assert not check(1e200 * (x.float() @ z.float()).double(), 1e200 * (x @ z)).correct


# --- what never passes ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float64, F32, F16, BF16, F8], ids=str)
@pytest.mark.parametrize("shape", [(1, 1), (5,), (40, 64), (6, 10, 33)], ids=str)
@pytest.mark.parametrize("magnitude", [1.0, 0.1, 100.0])
def test_null_kernels_fail(dtype: torch.dtype, shape: tuple[int, ...], magnitude: float) -> None:
    (x,) = normal(shape)
    output = (magnitude * (x.abs() + 0.5)).to(dtype)
    truth = output.double()
    half = output.float().clone().view(-1)
    half[half.numel() // 2 :] = 0
    assert check(output, truth).correct
    assert not check(torch.zeros_like(output), truth).correct
    assert not check(half.view(shape).to(dtype), truth).correct
    assert not check(torch.full_like(output, 3 * magnitude), truth).correct
    assert not check((-truth).to(dtype), truth).correct


def test_zeros_fail_even_if_the_reference_is_as_bad_in_its_own_dtype() -> None:
    truth = normal((40, 64))[0].double()
    result = check(torch.zeros(40, 64), truth, honest=torch.zeros(40, 64))
    assert not result.correct
    assert "never more than half of the value" in describe(result)


@pytest.mark.parametrize("kernel", [softmax, gelu], ids=["softmax", "gelu"])
def test_the_input_copied_to_the_output_fails(kernel: Kernel) -> None:
    (x,) = normal((30, 50))
    assert not check(x.clone(), kernel(x.double()), kernel(x)).correct


def test_a_small_row_beside_large_ones_cannot_be_left_out() -> None:
    truth = normal((8, 64))[0].double()
    truth[3] *= 1e-9
    got = truth.float()
    assert check(got, truth).correct
    got[3] = 0
    result = check(got, truth)
    assert not result.correct
    assert result.rms_error is not None
    assert result.rms_error.met, "the RMS of the whole output cannot see it"


def test_one_wrong_tile_among_many_breaks_the_maximum() -> None:
    truth = normal((1024, 1024))[0].double()
    got = truth.to(BF16)
    got[512:528, 512:528] = 0
    result = check(got, truth)
    assert result.max_error is not None
    assert not result.max_error.met


# --- NaN, infinities, subnormals -----------------------------------------------------------------------------------

NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("got", "truth", "correct"),
    [
        (NAN, NAN, True),
        (INF, INF, True),
        (-INF, -INF, True),
        (NAN, 1.0, False),
        (1.0, NAN, False),
        (INF, NAN, False),
        (INF, -INF, False),
        (INF, 1.0, False),
        (65504.0, INF, False),
        (INF, 1e6, True),
        (-INF, 1e6, False),
        (65504.0, 1e6, False),
        (NAN, 1e6, False),
        (65504.0, 65519.0, True),
        (INF, 65519.0, True),
        (INF, 65530.0, True),
        (65504.0, 65530.0, True),
        (INF, 65504.0, True),
        (-INF, 65504.0, False),
        (NAN, 65504.0, False),
        (INF, 65000.0, False),
        (65504.0, 66000.0, False),
    ],
)
@pytest.mark.parametrize("place", [0, 77, 127])
def test_nan_and_infinity_stand_where_float16_puts_them(got: float, truth: float, correct: bool, place: int) -> None:
    expected = normal((2, 64))[0].double()
    values = expected.to(F16)
    expected.view(-1)[place], values.view(-1)[place] = truth, got
    assert check(values, expected).correct is correct


def test_a_large_error_elsewhere_shows_although_the_truth_holds_infinities() -> None:
    truth = normal((4, 64))[0].double()
    truth[:, ::2] = -INF
    got = truth.float()
    assert check(got, truth).correct
    got[1, 1] += 1e-3
    assert not check(got, truth).correct


@pytest.mark.parametrize("dtype", [F32, BF16], ids=str)
def test_subnormals_flushed_to_zero_pass_beside_normal_numbers_alone(dtype: torch.dtype) -> None:
    truth = normal((8, 64))[0].double()
    truth[2] = 3e-39
    got = truth.to(dtype)
    got[2] = 0
    assert check(got, truth).correct
    only_subnormal = torch.full((8, 64), 3e-39, dtype=torch.float64)
    assert not check(torch.zeros(8, 64, dtype=dtype), only_subnormal).correct


def test_float16_softmax_of_long_rows_passes_with_subnormal_results_but_not_with_zeros() -> None:
    (x,) = normal((2, 65536), dtype=F16)
    result = judge(softmax, on_rounded(softmax, lambda t: t), (x,))
    assert result.correct
    assert not judge(softmax, torch.zeros_like, (x,)).correct


def test_where_the_truth_is_zero_nothing_but_zero_passes() -> None:
    truth = torch.zeros(4, 64, dtype=torch.float64)
    assert check(torch.zeros(4, 64), truth).correct
    assert not check(torch.full((4, 64), 1e-30), truth).correct


def test_a_row_that_is_zero_but_for_rounding_passes_on_the_scale_of_the_tensor() -> None:
    truth = normal((8, 64))[0].double()
    truth[0] = 1e-17
    got = truth.to(F16)
    got[0] = 1e-4
    on = {scale: Tolerance(scale=scale) for scale in ("row", "tensor")}
    assert not check_output("y", got, truth, truth.to(F16), on["row"]).correct
    assert check_output("y", got, truth, truth.to(F16), on["tensor"]).correct
    assert passes_fast_check(got, truth, on["tensor"])
    got[0] = 0.1
    assert not check_output("y", got, truth, truth.to(F16), on["tensor"]).correct
    assert not passes_fast_check(got, truth, on["tensor"])


def test_a_reference_that_overflows_in_its_own_dtype_widens_nothing() -> None:
    truth = normal((4, 64))[0].double()
    assert check(truth.to(F16), truth, honest=torch.full((4, 64), INF, dtype=F16)).correct
    assert not check(truth.to(F16) * 1.01, truth, honest=torch.full((4, 64), INF, dtype=F16)).correct


def test_a_submission_of_the_largest_numbers_is_recorded_without_infinities() -> None:
    result = check(torch.full((4,), 1e308, dtype=torch.float64), torch.full((4,), 1e-300, dtype=torch.float64))
    assert not result.correct
    assert OutputCheck.model_validate_json(result.model_dump_json()) == result


# --- integers, layout, blocks ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool], ids=str)
def test_integers_must_be_equal(dtype: torch.dtype) -> None:
    truth = (torch.arange(60) % 2).to(dtype).view(6, 10)
    equal = check(truth.clone(), truth)
    assert equal.correct
    assert (equal.max_error, equal.rms_error) == (None, None)
    got = truth.clone()
    got[5, 9] = 0
    result = check(got, truth)
    assert result.mismatch is not None
    assert (result.mismatch.wrong, result.mismatch.worst_index) == (1, (5, 9))


def test_neighbouring_64_bit_integers_differ() -> None:
    truth = torch.full((3,), 2**62, dtype=torch.int64)
    result = check(truth + torch.tensor([0, 1, 0]), truth)
    assert result.mismatch is not None
    bad = result.mismatch.first[0]
    assert (bad.index, bad.got, bad.expected, bad.error) == ((1,), str(2**62 + 1), str(2**62), "1")


def use_blocks_of(elements: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("field", "check", "mismatch", "hints"):
        monkeypatch.setattr(f"harness.compare.{module}.BLOCK_ELEMENTS", elements)
    monkeypatch.setattr("harness.compare.field.CPU_BLOCK_ELEMENTS", elements)


@pytest.mark.parametrize("shape", [(100,), (10, 10), (3, 40), (100, 1), (2, 5, 10)], ids=str)
def test_small_blocks_give_the_same_record_as_one(shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    truth = normal(shape)[0].double()
    got = truth.float() * (1 + EPS)
    got.view(-1)[-7] += 1
    got.view(-1)[30] = NAN
    whole = check(got, truth)
    for size in (7, 40, 64):
        use_blocks_of(size, monkeypatch)
        parts = check(got, truth)
        assert parts.mismatch == whole.mismatch
        for ours, theirs in ((parts.max_error, whole.max_error), (parts.rms_error, whole.rms_error)):
            assert ours is not None
            assert theirs is not None
            assert ours.error == pytest.approx(theirs.error, rel=1e-12)


class LargestTensor(TorchDispatchMode):
    """Records the largest tensor that is made, by dtype, apart from views of what was there before."""

    def __init__(self, *known: Tensor) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.known = {tensor.untyped_storage().data_ptr() for tensor in known}
        self.elements: dict[torch.dtype, int] = {}

    def __torch_dispatch__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        for tensor in [result] if isinstance(result, Tensor) else []:
            if tensor.untyped_storage().data_ptr() not in self.known:
                self.elements[tensor.dtype] = max(self.elements.get(tensor.dtype, 0), tensor.numel())
        return result


@pytest.mark.parametrize("shape", [(6400,), (100, 64), (6400, 1), (4, 1600)], ids=str)
@pytest.mark.parametrize("correct", [True, False])
def test_nothing_larger_than_a_block_is_made_but_the_mask_of_a_wrong_output(
    shape: tuple[int, ...], correct: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_blocks_of(64, monkeypatch)
    monkeypatch.setattr("harness.compare.hints.SAMPLE_ELEMENTS", 64)
    truth = normal(shape)[0].double()
    got, honest, poison = truth.float(), truth.float(), torch.zeros(shape)
    got.view(-1)[-100:] += 0.0 if correct else 1.0
    with LargestTensor(got, truth, honest, poison) as largest:
        assert check(got, truth, honest, poison).correct is correct
    mask = largest.elements.pop(torch.bool)
    assert mask <= (64 if correct else 6400)
    assert largest.elements.pop(torch.int64) <= 8 * 6400 // 64, "eight counts a block"
    # The RMS of a row, one number for at least 32 elements, is all that grows with the output.
    assert max(largest.elements.values()) <= 6400 // 32, largest.elements


def test_the_float64_temporaries_of_a_block_stay_below_512_mib() -> None:
    assert field_module.BLOCK_ELEMENTS * 8 * 12 <= 512 << 20, (
        "a dozen float64 tensors of one block are never alive at once"
    )


def test_the_inputs_of_a_comparison_are_left_as_they_were() -> None:
    truth = 1e200 * normal((5, 64))[0].double()
    got, honest = truth.clone(), truth.clone()
    copies = truth.clone(), got.clone(), honest.clone()
    got[1, 1] = 7.0
    copies[1][1, 1] = 7.0
    check(got, truth, honest, poison=torch.zeros_like(got))
    assert all(torch.equal(a, b) for a, b in zip((truth, got, honest), copies, strict=True))


@pytest.mark.parametrize(
    ("got", "truth", "honest"),
    [
        (torch.zeros(4), torch.zeros(5, dtype=torch.float64), torch.zeros(4)),
        (torch.zeros(4), torch.zeros(4), torch.zeros(4)),
        (torch.zeros(4), torch.zeros(4, dtype=torch.float64), torch.zeros(4, dtype=F16)),
        (torch.zeros(4, dtype=torch.int64), torch.zeros(4, dtype=torch.float64), torch.zeros(4, dtype=torch.int64)),
    ],
    ids=["shape", "truth not float64", "honest in another dtype", "integers against floats"],
)
def test_tensors_that_do_not_belong_together_are_our_own_fault(got: Tensor, truth: Tensor, honest: Tensor) -> None:
    with pytest.raises(HarnessError, match="output y"):
        check_output("y", got, truth, honest, Tolerance())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
def test_the_cheap_test_passes_honest_outputs_and_no_wrong_ones(dtype: torch.dtype) -> None:
    truth = torch.randn(64, 300, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    right = truth.to(dtype)
    wrong_element, zeros, scaled, nan = right.clone(), torch.zeros_like(right), right * 1.05, right.clone()
    wrong_element[63, 299] += 0.5
    nan[0, 0] = float("nan")
    assert passes_fast_check(right, truth, Tolerance())
    for wrong in (wrong_element, zeros, scaled, nan):
        assert not passes_fast_check(wrong, truth, Tolerance())
        assert not check_output("y", wrong, truth, right, Tolerance()).correct


@pytest.mark.parametrize("scale", ["row", "tensor"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.float8_e4m3fn], ids=str)
def test_the_cheap_test_of_a_long_list_is_that_of_each_member(dtype: torch.dtype, scale: Scale) -> None:
    tolerance, generator = Tolerance(scale=scale), torch.Generator().manual_seed(1)
    shapes = [(1, 1), (1, 3), (2, 5), (1, 40), (4, 33), (1, 3, 64)] * 4
    # Members of very different sizes: what is small beside another is not small beside its own row.
    truths = [
        (torch.randn(*shape, dtype=torch.float64, generator=generator) * 4.0 ** (i % 5)).to(dtype).double()
        for i, shape in enumerate(shapes)
    ]
    right = [truth.to(dtype) for truth in truths]
    assert all_pass_fast_check(list(zip(right, truths, strict=True)), tolerance)
    for wrong in range(len(right)):
        for value in (float("nan"), float("-inf") if dtype.itemsize > 1 else 448.0, 0.0, 1.3):
            got = [each.clone() for each in right]
            got[wrong].view(-1)[-1] = value
            each_right = all(passes_fast_check(one, truth, tolerance) for one, truth in zip(got, truths, strict=True))
            assert all_pass_fast_check(list(zip(got, truths, strict=True)), tolerance) == each_right
            assert not all_pass_fast_check(
                [(right[wrong].float().mul(float("nan")).to(dtype), truths[wrong])] * 20, tolerance
            )
    kinds = [*zip(right, truths, strict=True), (torch.arange(5), torch.arange(5))]
    assert all_pass_fast_check(kinds, tolerance)
    assert not all_pass_fast_check([*kinds, (torch.arange(5), torch.arange(5) + 1)], tolerance)


def test_the_cheap_test_leaves_to_the_careful_one_what_it_cannot_tell() -> None:
    truth = torch.randn(8, 64, dtype=torch.float64)
    truth[3, 5] = float("-inf")
    assert not passes_fast_check(truth.float(), truth, Tolerance())
    assert check_output("y", truth.float(), truth, truth.float(), Tolerance()).correct
    huge = torch.full((4, 64), 1e200, dtype=torch.float64)
    assert not passes_fast_check(torch.zeros_like(huge), huge, Tolerance())
    whole = torch.arange(10)
    assert passes_fast_check(whole, whole.clone(), Tolerance())
    assert not passes_fast_check(whole, whole + 1, Tolerance())


STACKED = 20


@pytest.mark.parametrize("shape", [(64, 300), (7,), (2, 5)], ids=str)
def test_one_call_of_a_stack_may_not_be_worse_than_a_call_alone(shape: tuple[int, ...]) -> None:
    truth = torch.randn(STACKED, *shape, dtype=torch.float64, generator=torch.Generator().manual_seed(1)) + 3
    truth = truth.float().double()
    honest, tolerance = truth.float(), Tolerance()
    worst = honest.clone()
    # 60 ulps at most, all of one call: within the maximum of 64, and four times the RMS of 16 that a call may have.
    worst[7] = (truth[7] * (1 + 60 * EPS)).float()
    for got, right in ((honest, True), (worst, False)):
        checks = [check_output("y", got, truth, honest, tolerance, calls=STACKED)]
        checks += [check_output("y", got[k], truth[k], honest[k], tolerance) for k in range(STACKED)]
        assert checks[0].correct is right
        assert all(each.correct for each in checks[1:]) is right
        assert passes_fast_check(got, truth, tolerance, STACKED) is right
        listed = [(got, truth), *[(honest, truth)] * 30]
        assert all_pass_fast_check(listed, tolerance, STACKED) is right
        assert checks[0].rms_error is not None
        assert checks[0].rms_error.error == max(c.rms_error.error for c in checks[1:] if c.rms_error)


def test_a_row_does_not_reach_into_the_next_call() -> None:
    truth = torch.full((STACKED, 4), 1e3, dtype=torch.float64)
    truth[7] = 1.0
    got = truth.float()
    got[7, 0] += 100 * EPS  # beside its own row 100 ulps, beside those of the calls around it nothing
    assert not check_output("y", got, truth, truth.float(), Tolerance(), calls=STACKED).correct
    assert not check_output("y", got[7], truth[7], truth[7].float(), Tolerance()).correct


@pytest.mark.parametrize("terms", [4096, 131_072])
def test_no_draw_decides_whether_a_running_sum_is_right(terms: int) -> None:
    """`double total` made `float total` in the softmax of the documents was accepted in three of eleven gradings."""
    generator = torch.Generator().manual_seed(1)
    plain, grown, draws = 0, 0, 40
    for _ in range(draws):
        x = torch.randn(1, terms, generator=generator)
        powers = (x - x.amax()).exp()
        got = powers / torch.from_numpy(np.add.accumulate(powers.numpy(), axis=1)[:, -1:])
        truth, honest = softmax(x.double()), softmax(x)
        plain += check_output("y", got, truth, honest, Tolerance()).correct
        grown += check_output("y", got, truth, honest, Tolerance().of_a_sum(terms)).correct
    assert grown == draws
    assert plain == draws if terms == 4096 else 0 < plain < draws, "without it the longest row is a lottery"


def test_the_floor_of_a_long_sum_still_refuses_a_lower_precision() -> None:
    x = torch.randn(64, 131_072, generator=torch.Generator().manual_seed(1))
    truth, honest, tolerance = softmax(x.double()), softmax(x), Tolerance().of_a_sum(x.shape[1])
    for dtype in (F16, BF16):
        assert not check_output("y", honest.to(dtype).float(), truth, honest, tolerance).correct
        assert not check_output("y", softmax(x.to(dtype)).float(), truth, honest, tolerance).correct
    short, long = (Tolerance().of_a_sum(terms).accumulation_ulps for terms in (650, 4 * 131_072))
    assert (short, round(long)) == (64.0, 1810)
