"""A first submission in Triton: its launch, sizes and masks are right, and its outputs hold zeros. Trusted."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from harness.errors import UsageError
from harness.problem import Problem
from harness.problem.dtypes import DTYPES
from harness.problem.expression import parse
from harness.problem.spec import TensorSpec
from kernelmark.authoring.expressions import place, python
from kernelmark.authoring.rendering import render
from kernelmark.authoring.start.source import (
    Calling,
    OutputGroup,
    call,
    calling,
    free_names,
    output_groups,
    refuse_taken,
    table,
)

_BITS = ("float8_e8m0fnu", "float4_e2m1fn_x2")
"""Triton has no such types."""


def source(problem: Problem) -> str:
    """The text of the file.

    Raises:
        UsageError: one of the problem's names means something else here, or the size of an output that a submission
        returns does not follow from what it is given.
    """
    refuse_taken(problem, ("torch", "triton", "tl"), "a module's")
    how, own = calling(problem), free_names(problem, ("compute", "BLOCK", "i", "index", "elements"))
    own["block"] = own.pop("BLOCK")
    shapes = list(_shapes(problem, how.known))
    passed = [name for name in problem.parameters if name in how.known]
    sizes = list(dict.fromkeys([*passed, *(name for names, _ in shapes for name in names)]))
    visible = {*how.known, *(tensor.name for tensor in problem.tensors if tensor.role != "input")}
    dtypes = {tensor.dtype for tensor in problem.tensors}
    numbers = [scalar.name for scalar in problem.scalars if scalar.name in how.known]
    numbers += [name for name in sizes if name not in dtypes]

    def member(tensor: TensorSpec) -> str:
        """What a kernel gets of a tensor: its member of this index, in a dtype that Triton has."""
        text = tensor.name + f"[{own['index']}]" * (tensor.count is not None)
        if tensor.dtype.startswith("complex"):
            return f"torch.view_as_real({text})"
        return f"{text}.view(torch.uint8)" if tensor.dtype in _BITS else text

    def kernel_parameters(group: OutputGroup) -> list[str]:
        tensors = [tensor.name for tensor in group.passed if tensor.name in visible]
        counts = [f"{tensor.name}_{own['elements']}" for tensor in group.written]
        layout = [f"{tensor.name}_{kind}{k}" for tensor in group.written for kind, k in _layout(tensor)]
        return [*tensors, *numbers, *counts, *layout, f"{own['block']}: tl.constexpr"]

    def kernel_arguments(group: OutputGroup) -> list[str]:
        tensors = [member(tensor) for tensor in group.passed if tensor.name in visible]
        written = [(tensor, member(tensor)) for tensor in group.written]
        counts = [f"{text}.numel()" for _, text in written] if len(written) > 1 else [own["elements"]]
        layout = [
            f"{text}.shape[{k}]" if kind == "size" else f"{text}.stride({k})"
            for tensor, text in written
            for kind, k in _layout(tensor)
        ]
        return [*tensors, *numbers, *counts, *layout, f"{own['block']}=1024"]

    def largest(group: OutputGroup) -> str:
        counts = [f"{member(tensor)}.numel()" for tensor in group.written]
        return counts[0] if len(counts) == 1 else f"max({', '.join(counts)})"

    def place_of(tensor: TensorSpec) -> str:
        names = [f"{tensor.name}_{kind}{k}" for kind, k in _layout(tensor)]
        middle = len(names) // 2
        return place(names[:middle], names[middle:], own["i"]).replace(" / ", " // ")

    return render(
        "start/triton.jinja",
        problem=problem,
        call=call,
        table=table(problem.tensors),
        **own,
        calling=how,
        shapes=[line for _, line in shapes],
        groups=output_groups(problem),
        kernel_parameters=kernel_parameters,
        kernel_arguments=kernel_arguments,
        largest=largest,
        place_of=place_of,
        new_tensor=lambda tensor: _new_tensor(problem, how, tensor, sizes),
    )


def _shapes(problem: Problem, known: Collection[str]) -> Iterator[tuple[list[str], str]]:
    """The parameters that are sizes of what a submission is given, by the lines that find them."""
    found: set[str] = set()
    for tensor in problem.tensors:
        names = [size if size in problem.parameters else "" for size in map(str, tensor.shape)]
        new = [name for name in names if name and name not in found]
        if not new or tensor.count is not None or tensor.name not in known:
            continue
        found.update(new)
        if all(names) and len({*names}) == len(names):
            yield new, f"{', '.join(names)}{',' * (len(names) == 1)} = {tensor.name}.shape"
        else:
            for name in dict.fromkeys(new):
                yield [name], f"{name} = {tensor.name}.shape[{names.index(name)}]"


def _new_tensor(problem: Problem, how: Calling, output: TensorSpec, sizes: Collection[str]) -> str:
    """Python that makes an output, for the style in which outputs are returned."""
    given = [tensor for tensor in problem.tensors if tensor.name in how.known]
    like = next((tensor for tensor in given if tensor.dtype == output.dtype), None)
    values = {scalar.value: scalar.name for scalar in problem.scalars if scalar.name in how.known}
    names = {name for size in (*output.shape, output.count) if isinstance(size, str) for name in parse(size).names}
    known = output.dtype in DTYPES or like is not None or output.dtype in sizes
    if not given or not known or names - {"index", *DTYPES, *values, *sizes}:
        what = f"the size or dtype of `{output.name}` does not follow from what a submission is given"
        raise UsageError(problem.slug, what, "use --lang torch, or write this file by hand")
    if output.dtype in DTYPES:
        dtype = f"torch.{output.dtype}"
    else:
        dtype = f"{_first(like)}.dtype" if like is not None else output.dtype
    shape = ", ".join(str(values.get(size, python(size))) for size in output.shape) + "," * (len(output.shape) == 1)
    made = f"torch.empty(({shape}), dtype={dtype}, device={_first(given[0])}.device)"
    return made if output.count is None else f"[{made} for index in range({python(output.count)})]"


def _first(tensor: TensorSpec) -> str:
    return tensor.name + "[0]" * (tensor.count is not None)


def _layout(tensor: TensorSpec) -> list[tuple[str, int]]:
    """The sizes and the strides that a kernel needs of a tensor that is not contiguous."""
    dimensions = len(tensor.shape) + tensor.dtype.startswith("complex") if tensor.strides is not None else 0
    return [(kind, k) for kind in ("size", "stride") for k in range(dimensions)]
