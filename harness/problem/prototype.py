"""The C functions that a submission to a problem defines, as CUDA and C++ declare them; trusted, no torch.

`kernelmark start`, `problems new` and `problems show` write them, the lint compares a README with them, and the judge
shows one after a crash.
"""

from __future__ import annotations

from collections.abc import Mapping

from harness.languages import LANGUAGES
from harness.problem.dtypes import DTYPES
from harness.problem.resolve import dtype_parameters, symbol
from harness.problem.spec import ProblemSpec, TensorSpec

_BOTH = {
    **{f"{sign}int{bits}": f"{sign}int{bits}_t" for sign in ("", "u") for bits in (8, 16, 32, 64)},
    **{name: "uint8_t" for name, info in DTYPES.items() if info.size_bytes == 1 and info.rounds},
    "float8_e8m0fnu": "uint8_t",
    "bool": "bool",
    "float32": "float",
    "float64": "double",
}
TYPES: Mapping[str, Mapping[str, str]] = {
    "cu": {
        **_BOTH,
        "float16": "__half",
        "bfloat16": "__nv_bfloat16",
        "float8_e4m3fn": "__nv_fp8_e4m3",
        "float8_e5m2": "__nv_fp8_e5m2",
        "float8_e8m0fnu": "__nv_fp8_e8m0",
        "float4_e2m1fn_x2": "__nv_fp4x2_e2m1",
        "complex64": "cuFloatComplex",
        "complex128": "cuDoubleComplex",
    },
    "cpp": {
        **_BOTH,
        "float16": "_Float16",
        "bfloat16": "bfloat16",
        "complex64": "std::complex<float>",
        "complex128": "std::complex<double>",
    },
}
"""The types of elements by dtype, for each suffix of a file."""


def symbols(problem: ProblemSpec, suffix: str) -> dict[str, dict[str, str]]:
    """The functions of a file, by name: for each the dtypes that stand for parameters. Empty if no case runs it."""
    devices = LANGUAGES[suffix].devices
    cases = [case for case in (*problem.tests, *problem.benchmarks) if set(case.devices).intersection(devices)]
    chosen = dtype_parameters(problem)
    return {symbol(problem, case): {name: str(case.params[name]) for name in chosen} for case in cases}


def sizes(problem: ProblemSpec) -> list[str]:
    """The parameters that are numbers, in the order of the call."""
    given = {name: value for case in problem.tests for name, value in {**case.draw, **case.params}.items()}
    return [name for name in problem.parameters if not isinstance(given[name], str)]


def pointer(spec: TensorSpec, types: Mapping[str, str]) -> str:
    """The type of a tensor's elements, as a pointer to them: `const float*`."""
    return f"{'const ' if spec.role == 'input' else ''}{types.get(spec.dtype, spec.dtype)}*"


def numbers(problem: ProblemSpec) -> list[str]:
    """The arguments after the tensors: scalars, then parameters."""
    kinds = {"int64": "int64_t", "float64": "double"}
    scalars = [f"{kinds[scalar.dtype]} {scalar.name}" for scalar in problem.scalars]
    return [*scalars, *(f"int64_t {name}" for name in sizes(problem))]


def arguments(problem: ProblemSpec, types: Mapping[str, str]) -> list[str]:
    """All arguments but the stream; `types` also has the C types of the parameters that hold dtypes."""
    lists = {spec.name: "const* " for spec in problem.tensors if spec.count is not None}
    pointers = [f"{pointer(spec, types)} {lists.get(spec.name, '')}{spec.name}" for spec in problem.tensors]
    return [*pointers, *numbers(problem)]


def prototypes(problem: ProblemSpec, suffix: str) -> dict[str, str]:
    """The declarations that a .cu or .cpp file defines, by symbol: `extern "C" void softmax(const float* x, …)`."""
    types, stream = TYPES[suffix], ["cudaStream_t stream"] if suffix == "cu" else []
    declared = {}
    for name, chosen in symbols(problem, suffix).items():
        typed = {**types, **{parameter: types[dtype] for parameter, dtype in chosen.items()}}
        declared[name] = f'extern "C" void {name}({", ".join([*arguments(problem, typed), *stream])})'
    return declared
