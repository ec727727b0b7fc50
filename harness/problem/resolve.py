"""Computes the shapes, dtypes, fills, scalars, C symbol, least cost and tolerance of a case. Trusted; imports no torch.

Called by `Problem.resolve`. Loading a problem resolves all cases, so that a bad one fails before anything is graded.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from harness.errors import nearest
from harness.problem.dtypes import DTYPES, FLOAT4_MAGNITUDES
from harness.problem.expression import elements_key, total_key
from harness.problem.fill_spec import Fill
from harness.problem.key import ProblemKey, case_key
from harness.problem.signature import forms, symbol
from harness.problem.spec import Case, Placement, ProblemSpec, ScalarSpec, TensorRole, TensorSpec
from harness.problem.tolerance import Tolerance
from harness.shared.call import MAX_ABSENT, MAX_BYTES, Form, Forms, settled
from harness.shared.layouts import OtherLayout

MAX_ELEMENTS = 2**40
MAX_TENSORS = 8192  # of a call; the judge fills and compares them one by one


@dataclass(frozen=True)
class ResolvedTensor:
    """One tensor of a case; `name` is like `x`, or `params[3]` for a member of the list `list_name`."""

    name: str
    role: TensorRole
    shape: tuple[int, ...]
    dtype: str
    fill: Fill
    list_name: str | None = None
    strides: tuple[int, ...] | None = None
    """In elements; None: contiguous and row-major."""
    memory: Placement = "device"
    layouts: tuple[OtherLayout, ...] = ()
    """What a returned tensor may be besides row-major."""

    @property
    def elements(self) -> int:
        return math.prod(self.shape)

    @property
    def span(self) -> int:
        """The number of elements in memory from the first to the last, including gaps."""
        if self.strides is None or not self.elements:
            return self.elements
        return _span(zip(self.shape, self.strides, strict=True))


@dataclass(frozen=True)
class ResolvedScalar:
    """A number that is passed by value: an `int` for int64, a `float` for float64."""

    name: str
    dtype: str
    value: int | float


@dataclass(frozen=True)
class ResolvedCase:
    """A case with all values computed; tensors and scalars are in argument order."""

    name: str
    hidden: bool
    params: Mapping[str, int | str]
    symbol: str
    tensors: tuple[ResolvedTensor, ...]
    scalars: tuple[ResolvedScalar, ...]
    forms: Forms
    minimum_bytes: int
    minimum_flops: int
    tolerance: Tolerance
    options: Mapping[str, bool | int | float | str] = field(default_factory=dict)
    """The arguments of `generate` in addition to the parameters."""
    absent: Mapping[str, int] = field(default_factory=dict)
    """The absent inputs, with their indices among the tensor arguments, where a list counts as one."""
    weight: float | None = None
    """How much a benchmark counts in the score; None: 1."""

    def row_major(self) -> ResolvedCase:
        """The case with results that are copied into row-major outputs, whatever their layout."""
        return replace(self, tensors=tuple(replace(tensor, layouts=()) for tensor in self.tensors))


def resolve_case(problem: ProblemSpec, case: Case, own: Case | None = None) -> ResolvedCase:
    """Resolve one case; `own` is the problem's own case from which it was drawn.

    Raises:
        ProblemError: a parameter is missing, unknown or of the wrong kind; an expression has no value; a size is
        negative or absurdly large; no output has an element; a fill does not suit its tensor.
    """
    of_case = case_key(problem, own or case)
    file = ProblemKey(of_case.file, case=of_case.path, parameters=case.params)
    _check_parameters(problem, case, of_case)
    _check_fills(problem, case, of_case)
    tensors: list[ResolvedTensor] = []
    absent: dict[str, int] = {}
    for number, spec in enumerate(problem.tensors):
        key = file.at("tensors", number)
        if spec.present is None or key.at("present").value(spec.present):
            tensors += _tensors(spec, case, key)
        else:
            absent[spec.name] = number
    if len(absent) > MAX_ABSENT:
        file.at("tensors").refuse(f"lack {len(absent)} in {file.case}", f"a call lacks at most {MAX_ABSENT}")
    if len(tensors) > MAX_TENSORS:
        remedy = f"a call has at most {MAX_TENSORS}, lists expanded"
        file.at("tensors").refuse(f"come to {len(tensors)} in {file.case}", remedy)
    if all(tensor.role == "input" or not tensor.elements for tensor in tensors):
        of_case.at("params").refuse("leaves every output without elements", "nothing would be tested: raise a size")
    scalars = tuple(_scalar(spec, file.at("scalars", number)) for number, spec in enumerate(problem.scalars))
    sized = file.with_parameters({**_elements(tensors), **{elements_key(name): 0 for name in absent}})
    minimum_bytes, minimum_flops = costs(problem, sized.with_parameters(_sum_values(tensors, {})))
    if (minimum_bytes < 1 and not problem.cost.of_data) or minimum_flops < 0:
        what = f"is {minimum_bytes} bytes and {minimum_flops} flops in {file.case}"
        file.at("cost").refuse(what, "state what a kernel must at least do")
    terms = sized.at("tolerance", "sum_length").value(problem.tolerance.sum_length)
    if terms < 1:
        sized.at("tolerance", "sum_length").refuse(f"is {terms} in {file.case}", "a sum has at least one term")
    return ResolvedCase(
        name=case.name,
        hidden=case.hidden,
        params=dict(case.params),
        symbol=symbol(problem, case),
        tensors=tuple(tensors),
        scalars=scalars,
        forms=_forms(problem, scalars, absent, file),
        minimum_bytes=max(minimum_bytes, 1),
        minimum_flops=minimum_flops,
        tolerance=problem.tolerance.of_a_sum(terms),
        options=dict(case.options),
        absent=absent,
        weight=case.weight if "weight" in case.model_fields_set else None,
    )


def costs(problem: ProblemSpec, key: ProblemKey) -> tuple[int, int]:
    """The bytes and operations of a case; the key's parameters must include the sizes of its tensors."""
    return key.at("cost", "bytes").value(problem.cost.bytes), key.at("cost", "flops").value(problem.cost.flops)


def costs_of_data(problem: ProblemSpec, case: ResolvedCase, totals: Mapping[str, int]) -> tuple[int, int]:
    """The bytes and operations of a case, if its generated inputs have these sums, by tensor or list.

    Raises:
        ProblemError: the cost has no value.
    """
    file = ProblemKey(problem.directory / "problem.toml", parameters=case.params)
    absent = {elements_key(name): 0 for name in case.absent}
    return costs(
        problem, file.with_parameters({**_elements(case.tensors), **absent, **_sum_values(case.tensors, totals)})
    )


def _sum_values(tensors: Iterable[ResolvedTensor], totals: Mapping[str, int]) -> dict[str, int]:
    """The values of `sum_of(name)` in a cost; 0 if they are not known, because nothing has been generated yet."""
    generated = [tensor for tensor in tensors if tensor.role != "output" and tensor.fill.kind == "generated"]
    names = {t.list_name or t.name for t in generated if DTYPES[t.dtype].family == "integer"}
    return {total_key(name): totals.get(name, 0) for name in names}


def _forms(problem: ProblemSpec, scalars: Iterable[ResolvedScalar], absent: Iterable[str], file: ProblemKey) -> Forms:
    values: dict[str, Form] = {scalar.name: scalar.value for scalar in scalars}
    values |= {name: {"none": True} for name in absent}

    def settle(several: Iterable[Form]) -> tuple[Form, ...]:
        return tuple(settled(form, file.parameters, values) for form in several)

    declared = forms(problem)
    in_case = Forms(settle(declared.init), settle(declared.arguments), *settle([declared.result]))
    if (nbytes := in_case.nbytes()) > MAX_BYTES:
        file.at("call").refuse(f"takes {nbytes:,} bytes in {file.case}, as JSON", f"its forms may take {MAX_BYTES:,}")
    return in_case


def _elements(tensors: Iterable[ResolvedTensor]) -> dict[str, int]:
    """The values of `elements(name)` in a cost; for a list, the elements of all members."""
    counts: dict[str, int] = {}
    for tensor in tensors:
        key = elements_key(tensor.list_name or tensor.name)
        counts[key] = counts.get(key, 0) + tensor.elements
    return counts


def _check_parameters(problem: ProblemSpec, case: Case, key: ProblemKey) -> None:
    params = key.at("params")
    for name in case.params:
        if name not in problem.parameters:
            params.at(name).refuse("is unknown", nearest(name, problem.parameters))
    if case.draw:
        key.at("draw").refuse("was not drawn from", "resolve what `Case.drawn` gives")
    for name in problem.parameters:
        if name not in case.params:
            params.refuse(f"lacks `{name}`", "give every parameter a value")
        value = case.params[name]
        if isinstance(value, str) and value not in DTYPES:
            params.at(name).refuse(f"is {value!r}, not a dtype", nearest(value, DTYPES))


def _check_fills(problem: ProblemSpec, case: Case, key: ProblemKey) -> None:
    roles = {spec.name: spec.role for spec in problem.tensors}
    for name in case.fill:
        if name not in roles:
            filled = [other for other in roles if roles[other] != "output"]
            key.at("fill", name).refuse("names no tensor", nearest(name, filled))
        if roles[name] == "output":
            key.at("fill", name).refuse("fills an output", "outputs are poisoned before every call; remove it")


def _tensors(spec: TensorSpec, case: Case, key: ProblemKey) -> list[ResolvedTensor]:
    """Resolve one tensor, or the members of a list; `key` is that of the specification."""
    dtype = _dtype(spec, key)
    fill = case.fill.get(spec.name, spec.fill)
    if spec.role != "output":
        of_fill = replace(key, path=key.case).at("fill", spec.name) if spec.name in case.fill else key.at("fill")
        fill = _with_bounds(fill, of_fill)
        _check_fill(fill, dtype, spec.name, of_fill)
    if spec.count is None:
        return [_tensor(spec, dtype, fill, key)]
    count = key.at("count").value(spec.count)
    if not 1 <= count <= MAX_TENSORS:
        key.at("count").refuse(f"is {count} in {key.case}", f"a list has 1 to {MAX_TENSORS} tensors")
    return [_tensor(spec, dtype, fill, key.with_parameters({"index": index})) for index in range(count)]


def _tensor(spec: TensorSpec, dtype: str, fill: Fill, key: ProblemKey) -> ResolvedTensor:
    shape = _shape(spec, key)
    strides = _strides(spec, shape, key)
    in_list = spec.count is not None
    name = f"{spec.name}[{key.parameters['index']}]" if in_list else spec.name
    list_name = spec.name if in_list else None
    return ResolvedTensor(name, spec.role, shape, dtype, fill, list_name, strides, spec.memory, spec.layouts)


def _dtype(spec: TensorSpec, key: ProblemKey) -> str:
    if spec.dtype in DTYPES:
        return spec.dtype
    value = key.parameters.get(spec.dtype)
    if value is None:
        what = f"is {spec.dtype!r}, neither a dtype nor a parameter"
        key.at("dtype").refuse(what, nearest(spec.dtype, [*DTYPES, *key.parameters]))
    if not isinstance(value, str):
        key.at("dtype").refuse(f"names the parameter `{spec.dtype}`, which holds {value}", "give it a dtype")
    return value


def _shape(spec: TensorSpec, key: ProblemKey) -> tuple[int, ...]:
    shape = []
    for number, dimension in enumerate(spec.shape):
        of_size = key.at("shape", number)
        shape.append(of_size.value(dimension))
        if shape[-1] < 0:
            of_size.refuse(f"is {shape[-1]} in {key.case}", "a dimension is at least 0")
    if (elements := math.prod(shape)) > MAX_ELEMENTS:
        key.at("shape").refuse(f"has {elements:,} elements in {key.case}", "a tensor has at most 2⁴⁰")
    return tuple(shape)


def _strides(spec: TensorSpec, shape: tuple[int, ...], key: ProblemKey) -> tuple[int, ...] | None:
    """The declared strides of a tensor. No two elements may be at the same place.

    The check requires a little more: a step along one dimension must pass everything that the dimensions with smaller
    strides span. Then the gaps between elements also have a simple form (`harness.judge.correctness.layout`).
    """
    if spec.strides is None:
        return None
    strides = tuple(key.at("strides", number).value(text) for number, text in enumerate(spec.strides))
    inner: list[tuple[int, int]] = []
    for size, stride in sorted(zip(shape, strides, strict=True), key=lambda dimension: dimension[1]):
        if stride < (_span(inner) if size > 1 and 0 not in shape else 0):
            what = f"is {list(strides)} for the shape {list(shape)} in {key.case}, where elements overlap"
            key.at("strides").refuse(what, "each stride is at least the span of the dimensions with smaller ones")
        if size > 1:
            inner.append((size, stride))
    if 0 not in shape and (span := _span(inner)) > MAX_ELEMENTS:
        key.at("strides").refuse(f"span {span:,} elements in {key.case}", "a tensor spans at most 2⁴⁰")
    return strides


def _span(dimensions: Iterable[tuple[int, int]]) -> int:
    """The number of elements in memory from the first to the last, for these sizes and strides."""
    return 1 + sum((size - 1) * stride for size, stride in dimensions)


def _scalar(spec: ScalarSpec, key: ProblemKey) -> ResolvedScalar:
    value = key.at("value")
    if spec.dtype == "int64":
        assert not isinstance(spec.value, float)  # refused by the spec
        return ResolvedScalar(spec.name, spec.dtype, value.value(spec.value))
    real = value.real(spec.value) if isinstance(spec.value, str) else float(spec.value)
    return ResolvedScalar(spec.name, spec.dtype, real)


def _with_bounds(fill: Fill, key: ProblemKey) -> Fill:
    """The fill with numbers as bounds."""

    def value(name: str, bound: int | float | str) -> int | float:
        if not isinstance(bound, str):
            return bound
        return key.at(name).real(bound) if fill.kind == "uniform" else key.at(name).value(bound)

    if not (isinstance(fill.low, str) or isinstance(fill.high, str)):
        return fill
    low, high = value("low", fill.low), value("high", fill.high)
    try:
        return fill.bounded(low, high)
    except ValueError as error:
        key.refuse(f"has `low` = {low} and `high` = {high} in {key.case}", str(error))


def _check_fill(fill: Fill, dtype: str, tensor: str, key: ProblemKey) -> None:
    """Refuse a fill whose values the dtype cannot represent."""
    info = DTYPES[dtype]
    if fill.neg_inf and not info.infinities:
        key.at("neg_inf").refuse(f"asks for -inf, which {dtype} does not have (tensor `{tensor}`)", "remove it")
    if fill.kind == "generated":
        return
    choice = fill.values if fill.kind == "choice" else ()
    powers = fill.kind == "powers" or (choice and all(math.frexp(value)[0] == 0.5 for value in choice))
    if info.family == "scale" and not powers:
        what = f"is {fill.kind!r} for `{tensor}`, which is {dtype} and holds powers of two"
        key.refuse(what, 'use { kind = "powers", low = …, high = … }')
    if fill.kind == "zeros":
        return
    whole = fill.kind == "integers" or (choice and all(value == int(value) for value in choice))
    if info.family in ("integer", "bool") and not whole:
        remedy = 'use { kind = "integers", low = …, high = … }'
        key.refuse(f"is {fill.kind!r} for `{tensor}`, which is {dtype}", remedy)
    if fill.kind == "powers" and fill.bounds[0] < info.least_exponent:
        key.refuse(f"goes below 2^{info.least_exponent}, the least of {dtype} (tensor `{tensor}`)", "raise `low`")
    if info.family == "packed" and fill.kind == "normal":
        return  # what is beyond ±6 becomes ±6
    limit = info.exact if whole and info.family != "scale" else math.inf
    low, high = fill.extent
    if low < max(info.low, -limit) or high > min(info.high, limit) or (dtype == "int64" and high >= 2**63 - 1):
        key.refuse(f"goes beyond what {dtype} can hold (tensor `{tensor}`)", "use smaller values")
    if fill.kind == "uniform" and info.size_bytes > 1 and high - low > info.high:  # torch draws bytes in float32
        key.refuse(f"spans more than the largest {dtype}, and cannot be drawn (tensor `{tensor}`)", "use closer bounds")
    if info.family == "packed" and any(abs(value) not in FLOAT4_MAGNITUDES for value in choice):
        remedy = f"use {', '.join(f'{value:g}' for value in FLOAT4_MAGNITUDES)} and their negatives"
        key.refuse(f"has values that {dtype} rounds (tensor `{tensor}`)", remedy)
