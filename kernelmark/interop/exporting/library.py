"""Embeds C++ and CUDA in a Python file, which compiles them with torch's `load_inline` when it is imported. Trusted.

Both projects expect `load_inline`. torch's headers stay out of the source: they take half a minute to compile, and
their flags remove the operators of `__half`.
"""

from __future__ import annotations

from harness.problem import Problem
from kernelmark.interop.exporting.request import Request

_PRELUDE = '''\
from types import SimpleNamespace

import torch
from torch.utils.cpp_extension import load_inline

_SOURCE = {source}
_BINDING = r"""
{binding}
"""
_library = load_inline(
    name="{name}",
    {sources},
    no_implicit_headers=True,
)
'''
_SOURCES = {
    "cu": """cpp_sources=[_BINDING],
    cuda_sources=[_SOURCE],
    extra_cflags=["-O3"],
    extra_cuda_cflags=[
        "-O3",
        "-U__CUDA_NO_HALF_OPERATORS__",
        "-U__CUDA_NO_HALF_CONVERSIONS__",
        "-U__CUDA_NO_HALF2_OPERATORS__",
        "-U__CUDA_NO_BFLOAT16_CONVERSIONS__",
    ]""",
    "cpp": """cpp_sources=[_SOURCE, _BINDING],
    extra_cflags=["-O3", "-march=native", "-fopenmp"],
    extra_ldflags=["-fopenmp"]""",
}
_ADDRESS = """\
#include <cstdint>
#include <vector>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
{declared}
struct kernelmark_address {{
    std::uintptr_t value;
    template <class T> operator T*() const {{ return reinterpret_cast<T*>(value); }}
}};
PYBIND11_MODULE(TORCH_EXTENSION_NAME, library) {{
{defined}
}}"""


def symbols(problem: Problem, language: str) -> dict[tuple[str, ...], str]:
    """The C functions that the cases use, by the values of the parameters in `dtype_parameters`."""
    device = "cuda" if language == "cu" else "cpu"
    cases = [case for case in (*problem.tests, *problem.benchmarks) if device in case.devices]
    chosen = dtype_parameters(problem)
    keys = dict.fromkeys(tuple(str(case.params[name]) for name in chosen) for case in cases)
    return {key: "_".join([problem.entry, *key]) for key in keys}


def dtype_parameters(problem: Problem) -> list[str]:
    """The parameters on whose values the name of the C function depends."""
    dtypes = {spec.dtype for spec in problem.tensors}
    return [name for name in problem.parameters if name in dtypes]


def numbers(problem: Problem) -> list[str]:
    """The parameters that a C function gets, in order."""
    cases = (*problem.tests, *problem.benchmarks)
    texts = {name for case in cases for name, value in case.params.items() if isinstance(value, str)}
    return [name for name in problem.parameters if name not in texts]


def prelude(request: Request) -> str:
    """Python that compiles the source; its functions are in `_library`, and `_functions` if there is one a dtype."""
    language, found = request.submission.language, symbols(request.problem, request.submission.language)
    text = _PRELUDE.format(
        source=literal(request.source),
        binding=_binding(request, list(found.values())),
        name=f"{request.problem.entry}_{request.submission.sha256[:12]}",
        sources=_SOURCES[language],
    )
    if not dtype_parameters(request.problem):
        return text
    rows = [f"    ({' '.join(f'torch.{each},' for each in key)}): _library.{name},\n" for key, name in found.items()]
    return f"{text}_functions = {{\n{''.join(rows)}}}\n"


def literal(source: str) -> str:
    """The source as a Python string, as it is where that is possible."""
    raw = f'r"""{source}"""'
    return repr(source) if '"""' in source or source.endswith(('"', "\\")) or "\r" in source else raw


def _binding(request: Request, functions: list[str]) -> str:
    """C++ that makes the functions callable with addresses as whole numbers."""
    problem, on_gpu = request.problem, request.submission.language == "cu"
    declared, taken, handed = [], [], []
    for spec in problem.tensors:
        array = spec.count is not None
        declared.append(f"void*{'*' * array} {spec.name}")
        taken.append(f"std::vector<std::uintptr_t> {spec.name}" if array else f"std::uintptr_t {spec.name}")
        address = f"reinterpret_cast<std::uintptr_t>({spec.name}.data())" if array else spec.name
        handed.append(f"kernelmark_address{{{address}}}")
    values = [f"int64_t {name}" for name in numbers(problem)]
    declared, taken, handed = declared + values, taken + values, handed + numbers(problem)
    if on_gpu:
        declared.append("void*")
        taken.append("std::uintptr_t last_")
        handed.append("kernelmark_address{last_}")
    defined = [
        f'    library.def("{name}", []({", ".join(taken)}) {{\n        {name}({", ".join(handed)});\n    }});'
        for name in functions
    ]
    # C++ is compiled in one unit with this, where its own declaration counts.
    declarations = [f'extern "C" void {name}({", ".join(declared)});' for name in functions] if on_gpu else []
    return _ADDRESS.format(declared="\n".join(declarations), defined="\n".join(defined))
