"""Writes the body of a Python function that is given tensors, and calls a submission with what its problem says.

`popcorn` and `kernelbench` put it into the function that each project calls. Trusted; no torch. Names that are added to
a submission's module begin with `_kernelmark`: its own must keep their meaning.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from harness.call import Form, names, parameters, subscript, written
from harness.errors import UsageError
from harness.problem.signature import default_result, forms
from harness.problem.spec import ScalarSpec, TensorSpec
from kernelmark.authoring.expressions import names as names_in
from kernelmark.authoring.expressions import python
from kernelmark.interop.exporting.library import dtype_parameters, numbers
from kernelmark.interop.exporting.parameters import first, statements
from kernelmark.interop.exporting.request import Request

_USED = {"torch", "math", "SimpleNamespace", "len", "range", "enumerate", "isinstance", "tuple"}
LAID_OUT = """

def _kernelmark_laid_out(tensor, strides):
    if tensor.stride() == strides:
        return tensor
    return torch.empty_strided(tensor.shape, strides, dtype=tensor.dtype, device=tensor.device).copy_(tensor)
"""


@dataclass(frozen=True)
class Adapter:
    """One call of a submission, as Python."""

    request: Request
    given: Mapping[str, str]
    """Where the function finds tensors, scalars and parameters, by name: `_data[0]`."""
    last: str = ""
    """The last argument of CUDA: its queue."""
    optional: bool = False
    """Whether outputs that are given may be None."""
    keeps_inputs: bool = False
    """Whether what is given must not change: inouts are copied."""

    def lines(self) -> list[str]:
        """The body, from the values that are given to `return`.

        Raises:
            UsageError: a parameter cannot be found out, or a name is one that the body needs.
        """
        problem = self.request.problem
        everything = (
            *(each.name for each in problem.tensors),
            *(each.name for each in problem.scalars),
            *problem.parameters,
        )
        for name in sorted(_USED.intersection(everything)):
            raise UsageError(problem.slug, f"an argument is called `{name}`, which the file needs itself", "rename it")
        bound = [f"{name} = {text}" for name, text in self.given.items() if name != text and not self._parameter(name)]
        inputs = {each.name for each in self._given() if each.role != "output" or not self.optional}
        at = {name: text for name, text in self.given.items() if self._parameter(name)}
        return [
            *bound,
            *statements(self.request, inputs, at, self._needed()),
            *(f"{each.name} = {_value(each)}" for each in self._computed()),
            *(line for each in problem.tensors for line in self._prepared(each)),
            *self._call(),
        ]

    def model(self) -> str:
        """A function that makes the class of a problem in the style `module`, once for each set of parameters."""
        problem = self.request.problem
        made = ", ".join(written(each) for each in forms(problem).init)
        return (
            "\n\n@functools.lru_cache(maxsize=None)\n"
            f"def _kernelmark_model({', '.join(['_device', *self._init()])}):\n"
            f"    _made = {problem.entry}({made})\n"
            "    return _made.to(_device) if isinstance(_made, torch.nn.Module) else _made\n"
        )

    def _given(self) -> list[TensorSpec]:
        return [each for each in self.request.problem.tensors if each.name in self.given]

    def _parameter(self, name: str) -> bool:
        return name in self.request.problem.parameters

    def _forms(self) -> tuple[Form, ...]:
        """The forms whose values the call makes; none if it hands over tensors and scalars alone."""
        return () if self._writes() else (*forms(self.request.problem).init, *forms(self.request.problem).arguments)

    def _writes(self) -> bool:
        return self.request.compiled or self.request.problem.call.style == "writes"

    def _init(self) -> list[str]:
        init = forms(self.request.problem).init
        return [*dict.fromkeys(name for form in init for name in (*names(form), *parameters(form)))]

    def _computed(self) -> list[ScalarSpec]:
        """The scalars that are used and not given."""
        used = {name for form in self._forms() for name in names(form)}
        scalars = self.request.problem.scalars
        return [each for each in scalars if each.name not in self.given and (self._writes() or each.name in used)]

    def _allocated(self, spec: TensorSpec) -> bool:
        """Whether a call needs a tensor that is not given."""
        used = self._writes() or any(spec.name in names(form) for form in self._forms())
        return spec.role == "output" and used and (self.optional or spec.name not in self.given)

    def _needed(self) -> set[str]:
        """The parameters that the body mentions."""
        problem = self.request.problem
        found = {name for form in self._forms() for name in parameters(form)}
        for scalar in self._computed():
            found |= names_in(scalar.value, real=scalar.dtype == "float64")
        for spec in problem.tensors:
            sizes = [*(spec.strides or ())] if spec.role != "output" or self._allocated(spec) else []
            if self._allocated(spec):
                sizes += [*spec.shape, *([] if spec.count is None else [spec.count])]
                found |= {spec.dtype}
            found |= {name for text in sizes for name in names_in(text)}
        if self._writes():
            found |= {name for form in (self._result(),) for name in parameters(form)}
        if self.request.compiled:
            found |= {*numbers(problem), *dtype_parameters(problem)}
        return found & set(problem.parameters)

    def _result(self) -> Form:
        """What the function returns, if the submission returns nothing: the inouts if there is no output, or a copy."""
        problem = self.request.problem
        result = default_result(problem) if problem.call.style == "writes" else forms(problem).result
        copies = self.keeps_inputs and problem.call.style == "writes"
        if result != {"none": True} and not copies:
            return result
        changed: list[Form] = [each.name for each in problem.tensors if each.role != "input"]
        return changed[0] if len(changed) == 1 else {"tuple": changed}

    def _device(self) -> str:
        """Where the tensors are, as Python."""
        inputs = [each for each in self._given() if each.role != "output"]
        return f"{first(inputs[0])}.device" if inputs else '"cuda"'

    def _prepared(self, spec: TensorSpec) -> Iterator[str]:
        """Lines after which a tensor is there, and lies in memory as the problem says."""
        name = spec.name
        if self._allocated(spec):
            yield from [f"if {name} is None:"] if self.optional else []
            yield f"{'    ' * self.optional}{name} = {self._of_each(spec, self._empty(spec))}"
        elif self.optional and spec.role == "output":
            return  # nothing uses it, and it may be None
        if name not in self.given:
            return
        if spec.role == "input" or (spec.role == "inout" and self.keeps_inputs):
            copied = "_each.clone()" if spec.role == "inout" else "_each"
            strides = "" if spec.strides is None else f"_kernelmark_laid_out({copied}, {_tuple(spec.strides)})"
            yield f"{name} = {self._of_each(spec, strides or f'{copied}.contiguous()')}"
        elif spec.strides is None:
            contiguous = self._of_each(spec, "_each.is_contiguous()")
            yield f"assert {contiguous if spec.count is None else f'all({contiguous})'}, '{name} is not contiguous'"

    @staticmethod
    def _of_each(spec: TensorSpec, text: str) -> str:
        """What is written of one tensor, `_each`, for the tensor or for each of the list, whose number is `index`."""
        if spec.count is None:
            return text.replace("_each", spec.name)
        if spec.role == "output" and "_each" not in text:
            return f"[{text} for index in range({python(spec.count)})]"
        return f"[{text} for index, _each in enumerate({spec.name})]"

    def _empty(self, spec: TensorSpec) -> str:
        dtype = spec.dtype if self._parameter(spec.dtype) else f"torch.{spec.dtype}"
        kind = f"dtype={dtype}, device={self._device()}"
        if spec.strides is None:
            return f"torch.empty({_tuple(spec.shape)}, {kind})"
        return f"torch.empty_strided({_tuple(spec.shape)}, {_tuple(spec.strides)}, {kind})"

    def _call(self) -> list[str]:
        problem = self.request.problem
        if not self._writes():
            called = "_kernelmark_entry"
            if problem.call.style == "module":
                called = f"_kernelmark_model({', '.join([self._device(), *self._init()])})"
            return [f"return {called}({', '.join(map(written, forms(problem).arguments))})"]
        scalars = [each.name for each in problem.scalars]
        tensors = [_pointer(each) if self.request.compiled else each.name for each in problem.tensors]
        if not self.request.compiled:
            return [f"_kernelmark_entry({', '.join([*tensors, *scalars])})", f"return {written(self._result())}"]
        chosen = dtype_parameters(problem)
        function = f"_functions[{', '.join(chosen)},]" if chosen else f"_library.{problem.entry}"
        arguments = [*tensors, *scalars, *numbers(problem), *([self.last] if self.last else [])]
        return [f"{function}({', '.join(arguments)})", f"return {written(self._result())}"]


def places(form: Form, at: str) -> Iterator[tuple[str, str]]:
    """The names in a form, parameters among them, and the Python that takes each from a value of that form."""
    if isinstance(form, str):
        yield form, at
    elif isinstance(form, list):
        for number, each in enumerate(form):
            yield from places(each, f"{at}[{number}]")
    elif isinstance(form, dict):
        [(kind, inner)] = form.items()
        if kind == "param":
            yield inner, at
        elif kind == "tuple":
            yield from places(inner, at)
        elif kind in ("dict", "fields"):
            for key, each in inner.items():
                yield from places(each, subscript(key, at) if kind == "dict" else f"{at}.{key}")


def _value(scalar: ScalarSpec) -> str:
    real = scalar.dtype == "float64"
    text = python(scalar.value, real=real)
    return f"float({text})" if real and not isinstance(scalar.value, float) else text


def _pointer(spec: TensorSpec) -> str:
    if spec.count is None:
        return f"{spec.name}.data_ptr()"
    return f"[_each.data_ptr() for _each in {spec.name}]"


def _tuple(texts: Sequence[str | int]) -> str:
    return f"({', '.join(python(each) for each in texts)}{',' * (len(texts) == 1)})"
