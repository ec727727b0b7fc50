"""Describes how submissions to a problem are called: forms for Python, and declarations for CUDA and C++.

`kernelmark start`, `problems new` and `problems show` write the declarations, the lint compares a README with them, and
the judge shows one after a crash. Trusted; imports no torch.
"""

from __future__ import annotations

from collections.abc import Mapping

from harness.languages import LANGUAGES
from harness.problem.dtypes import DTYPES
from harness.problem.spec import Case, ProblemFile, ProblemSpec, TensorSpec
from harness.shared.call import Form, Forms

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
"""The C types of elements by dtype, for each suffix of a file."""


def forms(problem: ProblemFile) -> Forms:
    """The forms of a call, including defaults; none in the style `writes`."""
    call = problem.call
    if call.style == "writes":
        return Forms()
    inputs = [spec.name for spec in problem.tensors if spec.role != "output"]
    arguments = call.arguments or (*inputs, *(spec.name for spec in problem.scalars))
    if call.style == "tree":
        arguments = (call.data,)
    if call.result is not None:
        return Forms(call.init, arguments, call.result)
    outputs: list[Form] = [spec.name for spec in problem.tensors if spec.role == "output"]
    default = {"tuple": outputs} if outputs else {"none": True}  # nothing if all are inouts
    return Forms(call.init, arguments, outputs[0] if len(outputs) == 1 else default)


def dtype_parameters(problem: ProblemSpec) -> list[str]:
    """The parameters that are the dtype of a tensor, in order."""
    dtypes = {spec.dtype for spec in problem.tensors}
    return [name for name in problem.parameters if name in dtypes]


def symbol(problem: ProblemSpec, case: Case) -> str:
    """The C entry point: the entry's name, followed by the case's dtypes in the order of the parameters."""
    return "_".join([problem.entry, *(str(case.params[name]) for name in dtype_parameters(problem))])


def symbols(problem: ProblemSpec, suffix: str) -> dict[str, dict[str, str]]:
    """The functions of a file, by name, with the dtypes of their parameters; empty if no case runs on its devices."""
    devices = LANGUAGES[suffix].devices
    cases = [case for case in (*problem.tests, *problem.benchmarks) if set(case.devices).intersection(devices)]
    chosen = dtype_parameters(problem)
    return {symbol(problem, case): {name: str(case.params[name]) for name in chosen} for case in cases}


def sizes(problem: ProblemSpec) -> list[str]:
    """The parameters that are numbers, in the order of the call."""
    values = {name: value for case in problem.tests for name, value in {**case.draw, **case.params}.items()}
    return [name for name in problem.parameters if not isinstance(values[name], str)]


def pointer(spec: TensorSpec, types: Mapping[str, str]) -> str:
    """The C type of a pointer to a tensor's elements: `const float*`."""
    return f"{'const ' if spec.role == 'input' else ''}{types.get(spec.dtype, spec.dtype)}*"


def numbers(problem: ProblemSpec) -> list[str]:
    """The C arguments after the tensors: scalars, then parameters."""
    kinds = {"int64": "int64_t", "float64": "double"}
    scalars = [f"{kinds[scalar.dtype]} {scalar.name}" for scalar in problem.scalars]
    return [*scalars, *(f"int64_t {name}" for name in sizes(problem))]


def arguments(problem: ProblemSpec, types: Mapping[str, str]) -> list[str]:
    """All C arguments but the stream; `types` must also have the C types of the dtype parameters."""
    lists = {spec.name: "const* " for spec in problem.tensors if spec.count is not None}
    pointers = [f"{pointer(spec, types)} {lists.get(spec.name, '')}{spec.name}" for spec in problem.tensors]
    return [*pointers, *numbers(problem)]


def lacks_weights(problem: ProblemFile) -> bool:
    """Whether a compiled file does not get all that the answer may depend on: an imported class may draw weights."""
    return problem.foreign is not None and problem.call.style == "module"


def prototypes(problem: ProblemSpec, suffix: str) -> dict[str, str]:
    """The declarations that a .cu or .cpp file defines, by symbol: `extern "C" void softmax(const float* x, …)`."""
    named = {*problem.parameters, *(t.name for t in problem.tensors), *(s.name for s in problem.scalars)}
    last = f"cudaStream_t stream{'_' * ('stream' in named)}"
    types, stream = TYPES[suffix], [last] if suffix == "cu" else []
    declared = {}
    for name, chosen in symbols(problem, suffix).items():
        typed = {**types, **{parameter: types[dtype] for parameter, dtype in chosen.items()}}
        declared[name] = f'extern "C" void {name}({", ".join([*arguments(problem, typed), *stream])})'
    return declared
