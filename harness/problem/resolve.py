"""The numbers of one case: its shapes, dtypes, fills, scalars, C symbol, least cost and tolerance; trusted, no torch.

`Problem.resolve` calls it, at load for every case, so that a bad one fails before anything is graded.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from harness.call import MAX_ABSENT, MAX_BYTES, Form, Forms
from harness.errors import nearest
from harness.problem.dtypes import DTYPES, FLOAT4_MAGNITUDES
from harness.problem.expression import elements_key
from harness.problem.flaws import Flaws, case_key, flaws_of
from harness.problem.signature import settled_forms
from harness.problem.spec import Case, Fill, Placement, ProblemSpec, Role, ScalarSpec, TensorSpec, Tolerance

MAX_ELEMENTS = 2**40
MAX_TENSORS = 8192  # of a call; the judge fills and compares them one by one


@dataclass(frozen=True)
class ResolvedTensor:
    """One tensor with its size: `name` is `x`, or `params[3]` for a member of the list `list_name`."""

    name: str
    role: Role
    shape: tuple[int, ...]
    dtype: str
    fill: Fill
    list_name: str | None = None
    strides: tuple[int, ...] | None = None
    """In elements; None: contiguous and row-major."""
    memory: Placement = "device"

    @property
    def elements(self) -> int:
        return math.prod(self.shape)

    @property
    def span(self) -> int:
        """From its first element to its last one, both included: in elements, those between them counted."""
        if self.strides is None or not self.elements:
            return self.elements
        return _span(zip(self.shape, self.strides, strict=True))


@dataclass(frozen=True)
class ResolvedScalar:
    """One number passed by value: an `int` for int64, a `float` for float64."""

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
    """What `generate` gets by name besides the parameters."""
    absent: Mapping[str, int] = field(default_factory=dict)
    """The inputs that the case lacks, each with its place among the tensor arguments, where a list is one."""
    weight: float | None = None
    """How much a benchmark counts in the score; None: 1."""


def resolve_case(problem: ProblemSpec, case: Case, of: Case | None = None) -> ResolvedCase:
    """Resolve one case; `of` is the problem's own case that it was drawn from.

    Raises:
        ProblemError: a parameter is missing, unknown or of the wrong kind; an expression has no value; a size is below
        one or absurdly large; a fill does not suit its tensor.
    """
    flaws, key = flaws_of(problem, of or case), case_key(problem, of or case)
    _check_parameters(problem, case, key, flaws)
    _check_fills(problem, case, key, flaws)
    tensors: list[ResolvedTensor] = []
    absent: dict[str, int] = {}
    for number, spec in enumerate(problem.tensors):
        if spec.present is None or flaws.value(f"tensors[{number}].present", spec.present, case.params):
            tensors += _tensors(spec, f"tensors[{number}]", case, key, flaws)
        else:
            absent[spec.name] = number
    if len(absent) > MAX_ABSENT:
        flaws.at("tensors", f"lack {len(absent)} in {key}", f"a call lacks at most {MAX_ABSENT}")
    if len(tensors) > MAX_TENSORS:
        flaws.at("tensors", f"come to {len(tensors)} in {key}", f"a call has at most {MAX_TENSORS}, lists expanded")
    if all(tensor.role == "input" or not tensor.elements for tensor in tensors):
        flaws.at(f"{key}.params", "leaves every output without elements", "nothing would be tested: raise a size")
    scalars = tuple(_scalar(spec, f"scalars[{n}].value", case, flaws) for n, spec in enumerate(problem.scalars))
    values: dict[str, Form] = {each.name: each.value for each in scalars} | {name: {"none": True} for name in absent}
    forms = settled_forms(problem, case.params, values)
    if forms.nbytes() > MAX_BYTES:
        flaws.at("call", f"takes {forms.nbytes():,} bytes in {key}, as JSON", f"its forms may take {MAX_BYTES:,}")
    known = {**case.params, **_elements(tensors), **{elements_key(name): 0 for name in absent}}
    minimum_bytes = flaws.value("cost.bytes", problem.cost.bytes, known)
    minimum_flops = flaws.value("cost.flops", problem.cost.flops, known)
    if minimum_bytes < 1 or minimum_flops < 0:
        remedy = "state what a kernel must at least do"
        flaws.at("cost", f"is {minimum_bytes} bytes and {minimum_flops} flops in {key}", remedy)
    terms = flaws.value("tolerance.sum_length", problem.tolerance.sum_length, known)
    if terms < 1:
        flaws.at("tolerance.sum_length", f"is {terms} in {key}", "a sum has at least one term")
    return ResolvedCase(
        name=case.name,
        hidden=case.hidden,
        params=dict(case.params),
        symbol=symbol(problem, case),
        tensors=tuple(tensors),
        scalars=scalars,
        forms=forms,
        minimum_bytes=minimum_bytes,
        minimum_flops=minimum_flops,
        tolerance=problem.tolerance.of_a_sum(terms),
        options=dict(case.options),
        absent=absent,
        weight=case.weight if "weight" in case.model_fields_set else None,
    )


def _elements(tensors: Iterable[ResolvedTensor]) -> dict[str, int]:
    """The value of `elements(name)` in a cost: for a list, the elements of all members."""
    counts: dict[str, int] = {}
    for tensor in tensors:
        key = elements_key(tensor.list_name or tensor.name)
        counts[key] = counts.get(key, 0) + tensor.elements
    return counts


def symbol(problem: ProblemSpec, case: Case) -> str:
    """The C entry point: the entry's name, with the case's dtypes in the order of the parameters."""
    chosen = {spec.dtype for spec in problem.tensors}
    return "_".join([problem.entry, *(str(case.params[name]) for name in problem.parameters if name in chosen)])


def _check_parameters(problem: ProblemSpec, case: Case, key: str, flaws: Flaws) -> None:
    for name in case.params:
        if name not in problem.parameters:
            flaws.at(f"{key}.params.{name}", "is unknown", nearest(name, problem.parameters))
    if case.draw:
        flaws.at(f"{key}.draw", "was not drawn from", "resolve what `Case.drawn` gives")
    for name in problem.parameters:
        if name not in case.params:
            flaws.at(f"{key}.params", f"lacks `{name}`", "give every parameter a value")
        value = case.params[name]
        if isinstance(value, str) and value not in DTYPES:
            flaws.at(f"{key}.params.{name}", f"is {value!r}, not a dtype", nearest(value, DTYPES))


def _check_fills(problem: ProblemSpec, case: Case, key: str, flaws: Flaws) -> None:
    roles = {spec.name: spec.role for spec in problem.tensors}
    for name in case.fill:
        if name not in roles:
            flaws.at(f"{key}.fill.{name}", "names no tensor", nearest(name, [n for n in roles if roles[n] != "output"]))
        if roles[name] == "output":
            flaws.at(f"{key}.fill.{name}", "fills an output", "outputs are poisoned before every call; remove it")


def _tensors(spec: TensorSpec, key: str, case: Case, case_path: str, flaws: Flaws) -> list[ResolvedTensor]:
    """One tensor, or the members of a list."""
    dtype = _dtype(spec, key, case, flaws)
    fill = case.fill.get(spec.name, spec.fill)
    if spec.role != "output":
        where = f"{case_path}.fill.{spec.name}" if spec.name in case.fill else f"{key}.fill"
        fill = _bounded(fill, where, case, case_path, flaws)
        _check_fill(fill, dtype, where, spec.name, flaws)
    if spec.count is None:
        return [_tensor(spec, spec.name, key, case.params, dtype, fill, case_path, flaws)]
    count = flaws.value(f"{key}.count", spec.count, case.params)
    if not 1 <= count <= MAX_TENSORS:
        flaws.at(f"{key}.count", f"is {count} in {case_path}", f"a list has 1 to {MAX_TENSORS} tensors")
    return [
        _tensor(spec, f"{spec.name}[{index}]", key, {**case.params, "index": index}, dtype, fill, case_path, flaws)
        for index in range(count)
    ]


def _tensor(
    spec: TensorSpec,
    name: str,
    key: str,
    parameters: Mapping[str, int | str],
    dtype: str,
    fill: Fill,
    case_path: str,
    flaws: Flaws,
) -> ResolvedTensor:
    shape = _shape(spec, key, parameters, case_path, flaws)
    strides = _strides(spec, shape, key, parameters, case_path, flaws)
    list_name = None if spec.count is None else spec.name
    return ResolvedTensor(name, spec.role, shape, dtype, fill, list_name, strides, spec.memory)


def _dtype(spec: TensorSpec, key: str, case: Case, flaws: Flaws) -> str:
    if spec.dtype in DTYPES:
        return spec.dtype
    value = case.params.get(spec.dtype)
    if value is None:
        choices = [*DTYPES, *case.params]
        flaws.at(f"{key}.dtype", f"is {spec.dtype!r}, neither a dtype nor a parameter", nearest(spec.dtype, choices))
    if not isinstance(value, str):
        flaws.at(f"{key}.dtype", f"names the parameter `{spec.dtype}`, which holds {value}", "give it a dtype")
    return value


def _shape(
    spec: TensorSpec, key: str, parameters: Mapping[str, int | str], case_path: str, flaws: Flaws
) -> tuple[int, ...]:
    shape = []
    for number, dimension in enumerate(spec.shape):
        size = flaws.value(f"{key}.shape[{number}]", dimension, parameters)
        if size < 0:
            flaws.at(f"{key}.shape[{number}]", f"is {size} in {case_path}", "a dimension is at least 0")
        shape.append(size)
    if math.prod(shape) > MAX_ELEMENTS:
        flaws.at(f"{key}.shape", f"has {math.prod(shape):,} elements in {case_path}", "a tensor has at most 2⁴⁰")
    return tuple(shape)


def _strides(
    spec: TensorSpec,
    shape: tuple[int, ...],
    key: str,
    parameters: Mapping[str, int | str],
    case_path: str,
    flaws: Flaws,
) -> tuple[int, ...] | None:
    """The strides that a tensor declares. No two elements may lie at one place.

    What is asked for is a little more: that a step along one dimension goes past all that the dimensions with smaller
    strides span. What is between the elements then has a simple form, too (`harness.judge.correctness.layout`).
    """
    if spec.strides is None:
        return None
    each = enumerate(spec.strides)
    strides = tuple(flaws.value(f"{key}.strides[{number}]", text, parameters) for number, text in each)
    inner: list[tuple[int, int]] = []
    for size, stride in sorted(zip(shape, strides, strict=True), key=lambda dimension: dimension[1]):
        if stride < (_span(inner) if size > 1 and 0 not in shape else 0):
            what = f"is {list(strides)} for the shape {list(shape)} in {case_path}, where elements overlap"
            remedy = "each stride is at least the span of the dimensions with smaller ones"
            flaws.at(f"{key}.strides", what, remedy)
        if size > 1:
            inner.append((size, stride))
    if 0 not in shape and _span(inner) > MAX_ELEMENTS:
        flaws.at(f"{key}.strides", f"span {_span(inner):,} elements in {case_path}", "a tensor spans at most 2⁴⁰")
    return strides


def _span(dimensions: Iterable[tuple[int, int]]) -> int:
    """Of sizes and strides."""
    return 1 + sum((size - 1) * stride for size, stride in dimensions)


def _scalar(spec: ScalarSpec, key: str, case: Case, flaws: Flaws) -> ResolvedScalar:
    if spec.dtype == "int64":
        assert not isinstance(spec.value, float)  # refused by the spec
        return ResolvedScalar(spec.name, spec.dtype, flaws.value(key, spec.value, case.params))
    value = flaws.real(key, spec.value, case.params) if isinstance(spec.value, str) else float(spec.value)
    return ResolvedScalar(spec.name, spec.dtype, value)


def _bounded(fill: Fill, key: str, case: Case, case_path: str, flaws: Flaws) -> Fill:
    """A fill whose bounds are numbers."""
    if not (isinstance(fill.low, str) or isinstance(fill.high, str)):
        return fill

    def value(name: str, bound: int | float | str) -> int | float:
        if not isinstance(bound, str):
            return bound
        compute = flaws.real if fill.kind == "uniform" else flaws.value
        return compute(f"{key}.{name}", bound, case.params)

    low, high = value("low", fill.low), value("high", fill.high)
    try:
        return fill.bounded(low, high)
    except ValueError as error:
        flaws.at(key, f"has `low` = {low} and `high` = {high} in {case_path}", str(error))


def _check_fill(fill: Fill, dtype: str, key: str, tensor: str, flaws: Flaws) -> None:
    """Refuse a fill whose values the dtype cannot hold."""
    info = DTYPES[dtype]
    if fill.neg_inf and not info.infinities:
        flaws.at(f"{key}.neg_inf", f"asks for -inf, which {dtype} does not have (tensor `{tensor}`)", "remove it")
    if fill.kind == "generated":
        return
    powers = fill.kind == "powers" or (fill.kind == "choice" and all(math.frexp(v)[0] == 0.5 for v in fill.values))
    if info.family == "scale" and not powers:
        what = f"is {fill.kind!r} for `{tensor}`, which is {dtype} and holds powers of two"
        flaws.at(key, what, 'use { kind = "powers", low = …, high = … }')
    if fill.kind == "zeros":
        return
    whole = fill.kind == "integers" or (fill.kind == "choice" and all(value == int(value) for value in fill.values))
    if info.family in ("integer", "bool") and not whole:
        remedy = 'use { kind = "integers", low = …, high = … }'
        flaws.at(key, f"is {fill.kind!r} for `{tensor}`, which is {dtype}", remedy)
    if fill.kind == "powers" and fill.bounds[0] < info.least_exponent:
        flaws.at(key, f"goes below 2^{info.least_exponent}, the least of {dtype} (tensor `{tensor}`)", "raise `low`")
    limit = info.exact if whole and info.family != "scale" else math.inf
    if info.family == "packed" and fill.kind == "normal":
        return  # what is beyond ±6 becomes ±6
    low, high = _range(fill)
    if low < max(info.low, -limit) or high > min(info.high, limit) or (dtype == "int64" and high >= 2**63 - 1):
        flaws.at(key, f"goes beyond what {dtype} can hold (tensor `{tensor}`)", "use smaller values")
    if info.family == "packed" and fill.kind == "choice" and any(abs(v) not in FLOAT4_MAGNITUDES for v in fill.values):
        remedy = f"use {', '.join(f'{value:g}' for value in FLOAT4_MAGNITUDES)} and their negatives"
        flaws.at(key, f"has values that {dtype} rounds (tensor `{tensor}`)", remedy)


def _range(fill: Fill) -> tuple[float, float]:
    """The least and the greatest value to expect."""
    match fill.kind:
        case "choice":
            return min(fill.values), max(fill.values)
        case "powers":
            low, high = (2.0**exponent if exponent < 1024 else math.inf for exponent in fill.bounds)
            return low, high
        case "normal":
            # Eight standard deviations: one element in 10¹⁵ is beyond, so no input overflows to infinity.
            return fill.mean - 8 * fill.scale, fill.mean + 8 * fill.scale
    return fill.bounds
