"""Writes a submission as Python that another project can call; `popcorn` and `kernelbench` add the project's details.

Python is not changed. C++ and CUDA are embedded: torch's `load_inline`, which both projects expect, compiles them when
the file is imported, and a function below makes the call. torch's headers are not included: they take half a minute to
compile, and torch's flags for them remove the operators of `__half`. Trusted; no torch.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from harness.errors import UsageError
from harness.problem import Problem
from harness.problem.dtypes import DTYPES
from harness.problem.expression import parse
from harness.problem.signature import dtype_parameters, forms, numbers, sizes, symbols
from harness.problem.spec import TensorSpec
from harness.shared.call import Form, places, written
from kernelmark.authoring.rendering import render
from kernelmark.interop.exporting.request import Request

_RESERVED = {"torch", "SimpleNamespace", "len", "range", "enumerate", "all"}


def python_of(request: Request, passed: Form, at: str, queue: str) -> str:
    """The exported file, without the lines that a project wants at its beginning.

    Args:
        passed: the form of the argument that the other project passes.
        at: the name of that argument in the file.
        queue: a Python expression for the stream, which CUDA gets as its last argument.

    Raises:
        UsageError: the value of a parameter cannot be derived from the arguments, or an argument has a reserved name.
    """
    problem, language = request.problem, request.submission.language
    if not request.compiled:
        name, entry = request.submitted_name, problem.entry
        alias = "" if entry == name else f"\n\n{name} = {entry}\n"
        return request.source.rstrip("\n") + "\n" + alias
    return render(
        "export/compiled.py.jinja",
        problem=problem,
        source=literal(request.source),
        sha256=request.submission.sha256,
        on_gpu=language == "cu",
        functions=symbols(problem, language),
        by_dtype=bool(dtype_parameters(problem)),
        parameters=[*_parameters(problem, language)],
        given=at,
        body=_body(request, dict(places(passed, at)), queue),
    )


def _body(request: Request, passed: Mapping[str, str], queue: str) -> list[str]:
    """The lines of the function that makes the call. `passed` has an expression for each value that is passed to it."""
    problem = request.problem
    for name in sorted(_RESERVED.intersection((*(spec.name for spec in problem.tensors), *problem.parameters))):
        raise UsageError(problem.slug, f"an argument is called `{name}`, which the file needs itself", "rename it")
    tensors = [spec for spec in problem.tensors if spec.name in passed]
    inputs = [spec for spec in tensors if spec.role == "input"]
    device = f"{_first(inputs[0])}.device" if inputs else '"cuda"'
    chosen = dtype_parameters(problem)
    function = f"_functions[{', '.join(chosen)},]" if chosen else f"_library.{problem.entry}"
    last = [queue] if request.submission.language == "cu" else []
    arguments = [*(_of_each(spec, "_each.data_ptr()") for spec in problem.tensors), *sizes(problem), *last]
    return [
        *(f"{spec.name} = {passed[spec.name]}" for spec in tensors),
        *(f"{name} = {_parameter(request, name, passed)}" for name in problem.parameters),
        *(line for spec in tensors for line in _in_place(spec)),
        *(f"{spec.name} = {_allocated(spec, device)}" for spec in problem.tensors if spec.name not in passed),
        f"{function}({', '.join(arguments)})",
        f"return {written(forms(problem).result)}",
    ]


def _parameter(request: Request, name: str, passed: Mapping[str, str]) -> str:
    """An expression for a parameter: an argument, a property of a tensor, or its value in the chosen case.

    Raises:
        UsageError: it is none of these.
    """
    if name in passed:
        return passed[name]
    for spec in request.problem.tensors:
        if spec.name not in passed:
            continue
        if spec.dtype == name:
            return f"{_first(spec)}.dtype"
        if spec.count == name:
            return f"len({spec.name})"
        if name in spec.shape:
            return f"{_first(spec)}.shape[{spec.shape.index(name)}]"
    if request.case is None:
        what = f"the parameter `{name}` cannot be read off the shape of an input"
        first = request.problem.benchmarks[0].name
        raise UsageError(request.problem.slug, what, f"fix it as in a test or benchmark, such as --case {first!r}")
    value = request.case.params.get(name)
    if value is None:
        what = f"the case draws the parameter `{name}`, which cannot be read off the shape of an input"
        raise UsageError("--case", what, "name one that has a value for it")
    return f"torch.{value}" if isinstance(value, str) else str(value)


def _in_place(spec: TensorSpec) -> Iterator[str]:
    """Lines that give a passed tensor the memory layout of the problem, or assert that it has it."""
    if spec.role == "input":
        strides = None if spec.strides is None else _tuple(spec.strides)
        moved = "_each.contiguous()" if strides is None else f"_kernelmark_laid_out(_each, {strides})"
        yield f"{spec.name} = {_of_each(spec, moved)}"
    elif spec.strides is None:
        contiguous = _of_each(spec, "_each.is_contiguous()")
        yield f"assert {contiguous if spec.count is None else f'all({contiguous})'}, '{spec.name} is not contiguous'"


def _allocated(spec: TensorSpec, device: str) -> str:
    """An expression that allocates an output."""
    dtype = f"torch.{spec.dtype}" if spec.dtype in DTYPES else spec.dtype
    sizes = f"{_tuple(spec.shape)}, " if spec.strides is None else f"{_tuple(spec.shape)}, {_tuple(spec.strides)}, "
    made = "torch.empty" if spec.strides is None else "torch.empty_strided"
    text = f"{made}({sizes}dtype={dtype}, device={device})"
    return text if spec.count is None else f"[{text} for index in range({python(spec.count)})]"


def _of_each(spec: TensorSpec, text: str) -> str:
    """The expression for one tensor, `_each`, applied to the tensor or to every member of the list, number `index`."""
    if spec.count is None:
        return text.replace("_each", spec.name)
    return f"[{text} for index, _each in enumerate({spec.name})]"


def _first(spec: TensorSpec) -> str:
    return spec.name if spec.count is None else f"{spec.name}[0]"


def _tuple(texts: Sequence[str | int]) -> str:
    return f"({', '.join(python(text) for text in texts)}{',' * (len(texts) == 1)})"


def python(text: str | int) -> str:
    """An expression of `problem.toml` in Python; a parameter that holds a dtype is a `torch.dtype` there."""
    if not isinstance(text, str):
        return repr(text)
    tree = ast.parse(parse(text).text, mode="eval").body  # a tree of its own: those of `parse` are shared
    return ast.unparse(_Python().visit(tree))


class _Python(ast.NodeTransformer):
    """Replaces the functions of `problem.toml` that Python lacks."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        assert isinstance(node.func, ast.Name)  # the language has no other calls
        arguments = [ast.unparse(self.visit(argument)) for argument in node.args]
        match node.func.id:
            case "ceil_div":
                text = f"-(-({arguments[0]}) // ({arguments[1]}))"
            case "sizeof":
                dtype = DTYPES.get(arguments[0])
                text = str(dtype.size_bytes) if dtype else f"{arguments[0]}.itemsize"
            case function:
                text = f"{function}({', '.join(arguments)})"
        return ast.parse(text, mode="eval").body


def literal(source: str) -> str:
    """The source as a Python string literal: a raw one where that is possible, so that it stays readable."""
    raw = f'r"""{source}"""'
    return repr(source) if '"""' in source or source.endswith(('"', "\\")) or "\r" in source else raw


class _Parameter(NamedTuple):
    """A parameter of a compiled function, and of the one that Python calls, which takes addresses as whole numbers."""

    declared: str
    taken: str
    passed: str


def _parameters(problem: Problem, language: str) -> Iterator[_Parameter]:
    for spec in problem.tensors:
        if spec.count is None:
            address = f"kernelmark_address{{{spec.name}}}"
            yield _Parameter(f"void* {spec.name}", f"std::uintptr_t {spec.name}", address)
        else:
            address = f"kernelmark_address{{reinterpret_cast<std::uintptr_t>({spec.name}.data())}}"
            yield _Parameter(f"void** {spec.name}", f"std::vector<std::uintptr_t> {spec.name}", address)
    for number, size in zip(numbers(problem), sizes(problem), strict=True):
        yield _Parameter(number, number, size)
    if language == "cu":
        yield _Parameter("void*", "std::uintptr_t last_", "kernelmark_address{last_}")
