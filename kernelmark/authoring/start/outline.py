"""A first submission in Triton, CUDA or C++ to a problem that has none of its own: the signature, to be filled in.

Trusted.
"""

from __future__ import annotations

from harness.errors import UsageError
from harness.languages import LANGUAGES
from harness.problem import Problem
from harness.problem.signature import prototypes
from harness.problem.spec import TensorSpec
from kernelmark.authoring.rendering import render
from kernelmark.authoring.start.source import calling

_HEADERS = {
    "__half": "cuda_fp16.h",
    "__nv_bf": "cuda_bf16.h",
    "__nv_fp8": "cuda_fp8.h",
    "__nv_fp4": "cuda_fp4.h",
    "cuFloatComplex": "cuComplex.h",
    "cuDoubleComplex": "cuComplex.h",
    "std::complex": "complex",
    "cudaStream_t": "cuda_runtime.h",
}


def source(problem: Problem, suffix: str) -> str:
    """The text of the file, in the language of files with this suffix; Python is in Triton.

    Raises:
        UsageError: the problem has no case where this language runs.
    """
    table = _table(problem.tensors)
    if suffix == "py":
        return render("start/outline.py.jinja", problem=problem, calling=calling(problem), table=table)
    functions = [*prototypes(problem, suffix).values()]
    if not functions:
        what = f"has no case for {' or '.join(LANGUAGES[suffix].devices)}, where a .{suffix} file runs"
        raise UsageError(problem.slug, what, "choose another --lang")
    used = {header for word, header in _HEADERS.items() if any(word in function for function in functions)}
    return render(
        "start/outline.c.jinja",
        problem=problem,
        language="CUDA" if suffix == "cu" else "C++",
        headers=sorted({"cstdint", *used}),
        table=table,
        functions=functions,
    )


def _table(tensors: tuple[TensorSpec, ...]) -> list[str]:
    """A line about each tensor: its name, shape, dtype and role."""
    rows = [(tensor.name, _shape(tensor), tensor.dtype, tensor.role) for tensor in tensors]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    return ["  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[3]]) for row in rows]


def _shape(tensor: TensorSpec) -> str:
    shape = f"[{', '.join(map(str, tensor.shape))}]"
    strides = f" strides [{', '.join(map(str, tensor.strides))}]" if tensor.strides is not None else ""
    return (f"{tensor.count} × " if tensor.count is not None else "") + shape + strides
