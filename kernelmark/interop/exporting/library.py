"""Embeds C++ and CUDA in a Python file, which compiles them with torch's `load_inline` when it is imported. Trusted.

Both projects expect `load_inline`. torch's headers stay out of the source: they take half a minute to compile, and
their flags remove the operators of `__half`.
"""

from __future__ import annotations

from collections.abc import Iterable

from harness.problem.signature import dtype_parameters, numbers, sizes, symbols
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


def prelude(request: Request) -> str:
    """Python that compiles the source; its functions are in `_library`, and `_functions` if there is one a dtype."""
    functions = symbols(request.problem, request.submission.language)
    text = _PRELUDE.format(
        source=literal(request.source),
        binding=_binding(request, functions),
        name=f"{request.problem.entry}_{request.submission.sha256[:12]}",
        sources=_SOURCES[request.submission.language],
    )
    if not dtype_parameters(request.problem):
        return text
    rows = [
        f"    ({' '.join(f'torch.{dtype},' for dtype in dtypes.values())}): _library.{name},\n"
        for name, dtypes in functions.items()
    ]
    return f"{text}_functions = {{\n{''.join(rows)}}}\n"


def literal(source: str) -> str:
    """The source as a Python string, as it is where that is possible."""
    raw = f'r"""{source}"""'
    return repr(source) if '"""' in source or source.endswith(('"', "\\")) or "\r" in source else raw


def _binding(request: Request, functions: Iterable[str]) -> str:
    """C++ that makes the functions callable with addresses as whole numbers."""
    problem, on_gpu = request.problem, request.submission.language == "cu"
    declared, taken, passed = [], [], []
    for spec in problem.tensors:
        array = spec.count is not None
        declared.append(f"void*{'*' * array} {spec.name}")
        taken.append(f"std::vector<std::uintptr_t> {spec.name}" if array else f"std::uintptr_t {spec.name}")
        address = f"reinterpret_cast<std::uintptr_t>({spec.name}.data())" if array else spec.name
        passed.append(f"kernelmark_address{{{address}}}")
    declared += numbers(problem)
    taken += numbers(problem)
    passed += sizes(problem)
    if on_gpu:
        declared.append("void*")
        taken.append("std::uintptr_t last_")
        passed.append("kernelmark_address{last_}")
    defined = [
        f'    library.def("{name}", []({", ".join(taken)}) {{\n        {name}({", ".join(passed)});\n    }});'
        for name in functions
    ]
    # C++ is compiled in one unit with this, where its own declaration counts.
    declarations = [f'extern "C" void {name}({", ".join(declared)});' for name in functions] if on_gpu else []
    return _ADDRESS.format(declared="\n".join(declarations), defined="\n".join(defined))
