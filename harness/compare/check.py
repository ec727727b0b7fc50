"""Checks one output: by two error metrics and the places of NaN and infinity, by equality, or by a fixed tolerance.

Called by the judge. Trusted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from harness.compare.budget import CEILING, budget, maximum_floor, rms_floor
from harness.compare.field import BLOCK_ELEMENTS, Block, Field, blocks, row_width
from harness.compare.mismatch import Evidence, explain, locate_floats, worst_of
from harness.compare.steps import beyond_steps
from harness.errors import HarnessError
from harness.problem.elements import dtype_name, info, numbers, rounded, wide, widened
from harness.problem.tolerance import Tolerance
from harness.verdict import OutputCheck

_MANY = 16  # outputs of a call from which on they are compared together
_FAST_ELEMENTS = 1 << 24  # of a block: more than in the full check, since there are fewer temporaries per element
_SMALL = 1 << 16  # elements of outputs that are compared together: `index_add_` serializes the sum of a long row


def check_output(
    name: str,
    got: Tensor,
    truth: Tensor,
    honest: Tensor,
    tolerance: Tolerance,
    poison: Tensor | None = None,
    *,
    calls: int = 1,
) -> OutputCheck:
    """Decide whether one output is right, and explain why if it is not.

    `got`, `honest` (the reference computed in the problem's own dtype) and `poison` (the content of the output before
    the call) have the output's dtype. `truth` is float64 or complex128; for integers, bool, packed values, and if the
    reference is inexact, it has the output's own dtype. All have the same shape and are on one device, CPU or CUDA;
    only a few elements leave it. `calls` calls are stacked along the first axis.

    A floating-point output must stay within two budgets. The first limits the largest |got − truth| / max(|truth|, RMS
    of the row, or of the whole output if the tolerance says so), which one wrong tile exceeds. The second limits
    ‖got − truth‖ / ‖truth‖ of the worst call, which arithmetic in a lower precision exceeds. NaN and infinities must be
    exactly where they are expected. Complex and packed numbers are compared part by part, along one more axis. Other
    outputs must be equal; scales are compared by their exponents. An output without elements is right.

    Raises:
        HarnessError: the tensors do not match, which is a bug of the judge.
    """
    _require_one_layout(name, got, truth, honest, poison)
    if not got.numel():
        return OutputCheck(output=name, dtype=dtype_name(got.dtype), correct=True)
    held = None if poison is None else numbers(poison)
    evidence = Evidence(name, got.dtype, numbers(got), _expected(truth, got.dtype), held)
    if not info(got.dtype).rounds:
        return _check_integers(evidence)
    return _check_floats(evidence, numbers(honest), tolerance, calls)


def passes_fast_check(got: Tensor, truth: Tensor, tolerance: Tolerance, calls: int = 1) -> bool:
    """A cheap test that only right outputs pass; False means that `check_output` must decide.

    The arguments are as for `check_output`. No honest reference is needed, since an error within the floors is within
    any budget, and no element's scale is smaller than its row's. On a GPU it compares 10⁹ elements in 20 ms. It works
    in blocks, since the outputs may take a tenth of the device's memory.
    """
    if not got.numel():
        return True
    dtype, got, truth = got.dtype, numbers(got), _expected(truth, got.dtype)
    if not info(dtype).rounds:
        pairs = zip(got.reshape(-1).split(_FAST_ELEMENTS), truth.reshape(-1).split(_FAST_ELEMENTS), strict=True)
        return all(torch.equal(*pair) for pair in pairs)
    width = row_width(truth.shape, tolerance.rms_of, calls)
    rows = list(blocks(truth.numel(), width, _FAST_ELEMENTS))
    own, expected = got.reshape(-1), truth.reshape(-1)
    sizes, errors, largest = (
        torch.zeros(truth.numel() // width, dtype=torch.float64, device=got.device) for _ in range(3)
    )
    for block in rows:  # either whole rows, or parts of one
        right, difference = _difference(own, expected, block)
        at = slice(block.row, block.row + len(right))
        sizes[at] = torch.hypot(sizes[at], _norm(right, dim=-1))
        errors[at] = torch.hypot(errors[at], _norm(difference, dim=-1))
        largest[at] = torch.maximum(largest[at], _norm(difference, ord=math.inf, dim=-1))
    scale, floor = sizes / math.sqrt(width), min(maximum_floor(dtype, tolerance), CEILING)
    of_calls, wrong = (_norm(norms.reshape(calls, -1), dim=-1) for norms in (sizes, errors))
    # NaN, infinities and other special values go to the full check.
    if not bool((of_calls.isfinite() & (wrong <= min(rms_floor(dtype, tolerance), CEILING) * of_calls)).all()):
        return False
    far = ~(largest <= floor * scale)  # the few rows with an element far above the rest
    if not bool(far.any()):
        return True
    for block in rows:
        right, difference = _difference(own, expected, block)
        at = slice(block.row, block.row + len(right))
        allowed = floor * torch.maximum(right[far[at]].abs(), scale[at][far[at], None])
        if not bool((difference[far[at]].abs() <= allowed).all()):
            return False
    return True


_norm = partial(torch.linalg.vector_norm, dtype=torch.float64)


def _difference(got: Tensor, truth: Tensor, block: Block) -> tuple[Tensor, Tensor]:
    """The expected values of a block, and their differences to the values of the output, as [rows, width].

    The expected values are widened to 32 bits, since the difference of narrower numbers would be rounded.
    """
    values, expected = block.of(got), block.of(truth)
    expected = expected.float() if expected.element_size() < 4 else expected
    return expected, (values.half() if values.element_size() == 1 else values) - expected


def all_pass_fast_check(pairs: Sequence[tuple[Tensor, Tensor]], tolerance: Tolerance, calls: int = 1) -> bool:
    """`passes_fast_check` for every (got, truth) of stacked calls; many small outputs are compared together.

    A list may have thousands of tensors of a few elements. Separately, each would take some fifteen operations and
    three waits for the device.
    """
    alike: dict[torch.dtype | None, list[tuple[Tensor, Tensor]]] = {}
    for got, truth in pairs:
        small = info(got.dtype).family == "float" and 0 < got.numel() <= _SMALL
        alike.setdefault(got.dtype if small else None, []).append((got, truth))
    return all(
        _pass_fast_check_together(members, tolerance, calls)
        if dtype and len(members) >= _MANY
        else all(passes_fast_check(got, truth, tolerance, calls) for got, truth in members)
        for dtype, members in alike.items()
    )


def _pass_fast_check_together(members: Sequence[tuple[Tensor, Tensor]], tolerance: Tolerance, calls: int) -> bool:
    """`passes_fast_check` for many outputs of one floating-point dtype, in few operations."""
    dtype, device = members[0][0].dtype, members[0][0].device
    values = torch.cat([(got.half() if got.element_size() == 1 else got).reshape(-1) for got, _ in members])
    expected = torch.cat([truth.reshape(-1) for _, truth in members]).double()
    widths = [row_width(truth.shape, tolerance.rms_of, calls) for _, truth in members]
    rows = torch.tensor([truth.numel() // width for (_, truth), width in zip(members, widths, strict=True)])
    width_of_row = torch.tensor(widths).repeat_interleave(rows).to(device)
    row_of_element = torch.arange(len(width_of_row), device=device).repeat_interleave(width_of_row)
    # Each member of each call has its own norm.
    rows_of_call = (rows // calls).repeat_interleave(calls)
    call_of_row = torch.arange(len(rows_of_call)).repeat_interleave(rows_of_call).to(device)

    def by_row(elements: Tensor) -> Tensor:
        return torch.zeros(len(width_of_row), dtype=torch.float64, device=device).index_add_(
            0, row_of_element, elements
        )

    def by_call(of_rows: Tensor) -> Tensor:
        norms = torch.zeros(len(rows_of_call), dtype=torch.float64, device=device)
        return norms.index_add_(0, call_of_row, of_rows)

    difference, squares = values - expected, by_row(expected.square())
    scale = torch.maximum(expected.abs(), (squares / width_of_row).sqrt()[row_of_element])
    near = difference.abs() <= min(maximum_floor(dtype, tolerance), CEILING) * scale
    allowed = min(rms_floor(dtype, tolerance), CEILING) * by_call(squares).sqrt()
    # Infinity and NaN are never near. If the squares overflow, the full check decides.
    right = near.all() & (by_call(by_row(difference.square())).sqrt() <= allowed).all() & squares.isfinite().all()
    return bool(right)


def _expected(truth: Tensor, dtype: torch.dtype) -> Tensor:
    """The truth as numbers; for outputs that must be equal, rounded to the output's dtype."""
    return numbers(truth if info(dtype).rounds else rounded(truth, dtype))


def _check_integers(evidence: Evidence) -> OutputCheck:
    name, dtype = evidence.output, dtype_name(evidence.dtype)
    if torch.equal(evidence.got, evidence.truth):
        return OutputCheck(output=name, dtype=dtype, correct=True)
    wrong = (evidence.got != evidence.truth).reshape(-1)
    mismatch = explain(evidence, wrong, worst_of(evidence, wrong))
    return OutputCheck(output=name, dtype=dtype, correct=False, mismatch=mismatch)


def _check_floats(evidence: Evidence, honest: Tensor, tolerance: Tolerance, calls: int) -> OutputCheck:
    name, dtype, floor = evidence.output, dtype_name(evidence.dtype), maximum_floor(evidence.dtype, tolerance)
    field = Field(evidence.truth, evidence.dtype, floor, tolerance.rms_of, calls)
    own, reference = field.measure(evidence.got.reshape(-1)), field.measure(honest.reshape(-1))
    maximum = budget(own.maximum, reference.maximum, tolerance, floor)
    rms = budget(own.rms, reference.rms, tolerance, rms_floor(evidence.dtype, tolerance))
    if own.misplaced == 0 and maximum.met and rms.met:
        return OutputCheck(output=name, dtype=dtype, correct=True, max_error=maximum, rms_error=rms)
    only_rms = own.misplaced == 0 and maximum.met
    threshold = min(reference.maximum, maximum.allowed) if only_rms else maximum.allowed
    evidence = replace(evidence, field=field, rms_error=rms.error, only_rms=only_rms)
    mismatch = explain(evidence, *locate_floats(evidence, field, threshold))
    return OutputCheck(output=name, dtype=dtype, correct=False, max_error=maximum, rms_error=rms, mismatch=mismatch)


def _require_one_layout(name: str, got: Tensor, truth: Tensor, honest: Tensor, poison: Tensor | None) -> None:
    others = {"truth": truth, "honest": honest} | ({} if poison is None else {"poison": poison})
    for role, tensor in others.items():
        if tensor.shape != got.shape or tensor.device != got.device:
            raise HarnessError(f"output {name}: {role} is {_layout(tensor)}, the output {_layout(got)}")
    same_dtype = honest.dtype == got.dtype and (poison is None or poison.dtype == got.dtype)
    if not (same_dtype and truth.dtype in (wide(got.dtype), got.dtype)):
        raise HarnessError(f"output {name}: {got.dtype} cannot be held against {truth.dtype} and {honest.dtype}")


def _layout(tensor: Tensor) -> str:
    return f"{list(tensor.shape)} on {tensor.device}"


def check_close(
    name: str,
    got: Tensor,
    truth: Tensor,
    honest: Tensor,
    tolerance: Tolerance,
    poison: Tensor | None = None,
    *,
    calls: int = 1,
) -> OutputCheck:
    """Decide, like `torch.allclose`, whether |got - truth| <= atol + rtol * |truth| everywhere; NaN is never close.

    The arguments are as for `check_output`, which measures the error of a right answer.
    """
    if is_close(got, truth, tolerance):
        return check_output(name, got, truth, honest, tolerance, poison, calls=calls).accepted()
    wrong = torch.cat(list(_far_elements(got, truth, tolerance)))
    rule = f"{tolerance.atol:g} + {tolerance.rtol:g} × |expected|"
    return _wrong_by_rule(rule, wrong, name, got, truth, tolerance, poison, calls)


def check_steps(
    name: str,
    got: Tensor,
    truth: Tensor,
    honest: Tensor,
    tolerance: Tolerance,
    poison: Tensor | None = None,
    *,
    calls: int = 1,
) -> OutputCheck:
    """Decide whether no element is off by more than `off_by` steps, and in each call at most a `share` of them is off.

    The arguments are as for `check_output`; `honest` is not used.
    """
    if (wrong := beyond_steps(got, truth, tolerance, calls)) is None:
        return OutputCheck(output=name, dtype=dtype_name(got.dtype), correct=True)
    step = f"{tolerance.off_by} step{'' if tolerance.off_by == 1 else 's'} of {dtype_name(got.dtype)}"
    rule = step if tolerance.share == 1 else f"{step}, or more than {100 * tolerance.share:g} % are off"
    return _wrong_by_rule(rule, wrong, name, got, truth, tolerance, poison, calls)


def check_by(tolerance: Tolerance) -> Callable[..., OutputCheck]:
    """The check that a tolerance requires. All checks have the arguments of `check_output`."""
    if tolerance.off_by is not None:
        return check_steps
    return check_output if tolerance.rtol is None else check_close


def _wrong_by_rule(
    rule: str,
    wrong: Tensor,
    name: str,
    got: Tensor,
    truth: Tensor,
    tolerance: Tolerance,
    poison: Tensor | None,
    calls: int,
) -> OutputCheck:
    """The check of an output with these wrong elements, by a rule other than the budget."""
    values, expected = numbers(got), _expected(truth, got.dtype)
    field = rms_error = None
    if info(got.dtype).rounds:
        field = Field(expected, got.dtype, maximum_floor(got.dtype, tolerance), tolerance.rms_of, calls)
        rms_error = field.measure(values.reshape(-1)).rms
    if values.numel() > wrong.numel():  # complex and packed elements: mark the parts that differ
        apart = values.reshape(wrong.numel(), -1) != expected.reshape(wrong.numel(), -1)
        wrong = (wrong[:, None] & apart).reshape(-1)
    held = None if poison is None else numbers(poison)
    evidence = Evidence(name, got.dtype, values, expected, held, field, rms_error)
    mismatch = explain(evidence, wrong, worst_of(evidence, wrong)).model_copy(update={"allowed": rule})
    return OutputCheck(output=name, dtype=dtype_name(got.dtype), correct=False, mismatch=mismatch)


def is_close(got: Tensor, truth: Tensor, tolerance: Tolerance) -> bool:
    """Whether `check_close` accepts an output."""
    return not any(bool(wrong.any()) for wrong in _far_elements(got, truth, tolerance))


def _far_elements(got: Tensor, truth: Tensor, tolerance: Tolerance) -> Iterator[Tensor]:
    """Yield masks of the elements that are too far off, [elements] bool, block by block."""
    assert tolerance.rtol is not None
    assert tolerance.atol is not None
    flat, expected = got.reshape(-1), truth.reshape(-1)
    for at in range(0, flat.numel(), BLOCK_ELEMENTS):
        values, wanted = (_exact(tensor[at : at + BLOCK_ELEMENTS]) for tensor in (flat, expected))
        near = torch.isclose(values, wanted, rtol=tolerance.rtol, atol=tolerance.atol)
        yield (~near).view(len(values), -1).any(dim=-1)


def _exact(tensor: Tensor) -> Tensor:
    """Convert to float64 or complex128 (so that the distance is that in the complex plane); packed values get one more
    axis.
    """
    wide = widened(tensor)
    return wide if wide.dtype in (torch.float64, torch.complex128) else numbers(wide).to(torch.float64)
