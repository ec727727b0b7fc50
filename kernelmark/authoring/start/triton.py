"""A first submission in Triton: its launch, sizes and masks are right, and its outputs hold zeros. Trusted.

Outputs of one `count` are written by one kernel, as in `compiled`.
"""

from __future__ import annotations

from collections.abc import Iterator

from harness.errors import UsageError
from harness.problem import Problem
from harness.problem.dtypes import DTYPES
from harness.problem.expression import parse
from harness.problem.spec import TensorSpec
from kernelmark.authoring.expressions import python
from kernelmark.authoring.start.calling import arguments_of, calling, free, refuse_taken
from kernelmark.authoring.start.sizes import call, place, table

_BITS = ("float8_e8m0fnu", "float4_e2m1fn_x2")
"""Triton has no such types."""


def source(problem: Problem) -> str:
    """The text of the file.

    Raises:
        UsageError: one of the problem's names means something else here, or the size of an output that a submission
        returns does not follow from what it is given.
    """
    refuse_taken(problem, ("torch", "triton", "tl"), "a module's")
    return _File(problem).text()


class _File:
    def __init__(self, problem: Problem) -> None:
        self._problem, self._how = problem, calling(problem)
        taken = {problem.entry, *problem.parameters, *arguments_of(problem)}
        names = ("compute", "BLOCK", "i", "index", "elements")
        self._compute, self._block, self._i, self._index, self._elements = (free(name, taken) for name in names)
        self._groups = list(dict.fromkeys(each.count for each in problem.tensors if each.role != "input"))
        handed = [name for name in problem.parameters if name in self._how.known]
        self._sizes = list(dict.fromkeys([*handed, *(name for names, _ in self._shapes() for name in names)]))

    def text(self) -> str:
        kernels = "\n\n\n".join("\n".join(self._kernel(group)) for group in self._groups)
        body = "\n".join(self._body())
        shapes = "\n".join(f"# {line}" for line in table(self._problem.tensors))
        types = "from types import SimpleNamespace\n\n" if "SimpleNamespace(" in body else ""
        torch = "import torch\n" if "torch." in body else ""
        return (
            f'"""{self._problem.slug} in Triton: it runs, and is wrong until `{self._compute}` is filled in."""\n\n'
            f"{types}{torch}import triton\nimport triton.language as tl\n\n{shapes}\n\n\n{kernels}\n\n\n{body}\n"
        )

    def _shapes(self) -> Iterator[tuple[list[str], str]]:
        """The parameters that are sizes of what a submission is given, by the lines that find them."""
        found: set[str] = set()
        for tensor in self._problem.tensors:
            names = [each if each in self._problem.parameters else "" for each in map(str, tensor.shape)]
            new = [name for name in names if name and name not in found]
            if not new or tensor.count is not None or tensor.name not in self._how.known:
                continue
            found.update(new)
            if all(names) and len({*names}) == len(names):
                yield new, f"{', '.join(names)}{',' * (len(names) == 1)} = {tensor.name}.shape"
            else:
                for name in dict.fromkeys(new):
                    yield [name], f"{name} = {tensor.name}.shape[{names.index(name)}]"

    def _written(self, group: int | str | None) -> list[TensorSpec]:
        return [each for each in self._problem.tensors if each.role != "input" and each.count == group]

    def _handed(self, group: int | str | None) -> list[TensorSpec]:
        known = {*self._how.known, *(each.name for each in self._problem.tensors if each.role != "input")}
        return [each for each in self._problem.tensors if each.count in (None, group) and each.name in known]

    def _numbers(self) -> list[str]:
        chosen = {each.dtype for each in self._problem.tensors}  # these hold dtypes
        scalars = [each.name for each in self._problem.scalars if each.name in self._how.known]
        return [*scalars, *(name for name in self._sizes if name not in chosen)]

    def _name(self, group: int | str | None) -> str:
        number = self._groups.index(group)
        return self._compute + (f"_{number}" if number else "")

    def _kernel(self, group: int | str | None) -> Iterator[str]:
        """The kernel, which stores zeros, or what an inout holds."""
        i, block = self._i, self._block
        counts = [f"{each.name}_{self._elements}" for each in self._written(group)]
        layout = [name for each in self._written(group) for name in _layout_names(each)]
        given = [*(each.name for each in self._handed(group)), *self._numbers(), *counts, *layout]
        yield "@triton.jit"
        yield call(f"def {self._name(group)}", [*given, f"{block}: tl.constexpr"], ":")
        yield f"    {i} = tl.program_id(0).to(tl.int64) * {block} + tl.arange(0, {block})"
        yield "    # TODO: compute the outputs. Each program has some elements, in row-major order. Divide the work in"
        yield "    # another way where that suits you better, such as a row for each program."
        for spec, count in zip(self._written(group), counts, strict=True):
            names, at = _layout_names(spec), i
            if names:
                dimensions, at = len(names) // 2, f"{spec.name}_place"
                found = place(names[:dimensions], names[dimensions:], i).replace(" / ", " // ")
                yield f"    {at} = {found}"
            where, mask = f"{spec.name} + {at}", f"mask={i} < {count}"
            value = f"tl.zeros(({block},), {spec.name}.dtype.element_ty)"
            if spec.role == "inout":
                value = f"{spec.name}_value"
                yield f"    {value} = tl.load({where}, {mask})"
            yield f"    tl.store({where}, {value}, {mask})"

    def _body(self) -> Iterator[str]:
        how = self._how
        yield from how.head
        yield from (how.indent + line for _, line in self._shapes())
        for spec in self._problem.tensors:
            if spec.role == "output" and spec.name not in how.known:
                yield f"{how.indent}{spec.name} = {self._made(spec)}"
        for group in self._groups:
            yield from (how.indent + line for line in self._launch(group))
        if how.result:
            yield f"{how.indent}return {how.result}"

    def _launch(self, group: int | str | None) -> Iterator[str]:
        indent = ""
        if group is not None:
            yield f"for {self._index} in range(len({self._written(group)[0].name})):"
            indent = "    "
        members = {each.name: self._member(each) for each in self._handed(group)}
        written = [members[each.name] for each in self._written(group)]
        counts = [f"{each}.numel()" for each in written]
        layout = [
            f"{member}.{what}"
            for spec, member in zip(self._written(group), written, strict=True)
            if (dimensions := len(_layout_names(spec)) // 2)
            for what in (
                *(f"shape[{number}]" for number in range(dimensions)),
                *(f"stride({number})" for number in range(dimensions)),
            )
        ]
        most = counts[0] if len(counts) == 1 else f"max({', '.join(counts)})"
        counts = [self._elements] if len(counts) == 1 else counts
        given = [*members.values(), *self._numbers(), *counts, *layout, f"{self._block}=1024"]
        yield f"{indent}{self._elements} = {most}"
        launch = call(f"{indent}{self._name(group)}[(triton.cdiv({self._elements}, 1024),)]", given, "")
        yield launch.replace("\n", f"\n{self._how.indent}")

    def _member(self, spec: TensorSpec) -> str:
        """What a kernel gets of a tensor: its member of this index, in a dtype that Triton has."""
        member = spec.name + f"[{self._index}]" * (spec.count is not None)
        if spec.dtype.startswith("complex"):
            return f"torch.view_as_real({member})"
        return f"{member}.view(torch.uint8)" if spec.dtype in _BITS else member

    def _made(self, spec: TensorSpec) -> str:
        """A new tensor, for the style in which outputs are returned."""
        given = [each for each in self._problem.tensors if each.name in self._how.known]
        like = next((each for each in given if each.dtype == spec.dtype), None)
        values = {each.value: each.name for each in self._problem.scalars if each.name in self._how.known}
        names = {name for each in (*spec.shape, spec.count) if isinstance(each, str) for name in parse(each).names}
        known = spec.dtype in DTYPES or like is not None or spec.dtype in self._sizes
        if not given or not known or names - {"index", *DTYPES, *values, *self._sizes}:
            what = f"the size or dtype of `{spec.name}` does not follow from what a submission is given"
            raise UsageError(self._problem.slug, what, "use --lang torch, or write this file by hand")
        dtype = f"torch.{spec.dtype}" if spec.dtype in DTYPES else spec.dtype
        if spec.dtype not in DTYPES and like is not None:
            dtype = f"{_first(like)}.dtype"
        shape = "".join(f"{values.get(each, python(each))}, " for each in spec.shape).removesuffix(
            " " if len(spec.shape) == 1 else ", "
        )
        made = f"torch.empty(({shape}), dtype={dtype}, device={_first(given[0])}.device)"
        if spec.count is None:
            return made
        return f"[{made} for index in range({python(spec.count)})]"


def _first(spec: TensorSpec) -> str:
    return spec.name + "[0]" * (spec.count is not None)


def _layout_names(spec: TensorSpec) -> list[str]:
    """The sizes and the strides of a tensor that is not contiguous, as arguments of a kernel."""
    if spec.strides is None:
        return []
    dimensions = len(spec.shape) + spec.dtype.startswith("complex")
    return [f"{spec.name}_{what}{number}" for what in ("size", "stride") for number in range(dimensions)]
