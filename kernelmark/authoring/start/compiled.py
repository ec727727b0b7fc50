"""A first submission in CUDA or C++: its symbols, argument types and bounds are right, its outputs hold zeros. Trusted.

`templates/start/functions.jinja` and what extends it have the functions, `compiled.jinja` the file around them.
"""

from __future__ import annotations

from harness.errors import UsageError
from harness.languages import Language
from harness.problem import Problem, signature
from kernelmark.authoring.expressions import place, product
from kernelmark.authoring.rendering import render
from kernelmark.authoring.start.source import (
    OutputGroup,
    argument_names,
    call,
    free_names,
    output_groups,
    refuse_taken,
    table,
)

_HEADERS = {
    "__half": "cuda_fp16.h",
    "__nv_bf": "cuda_bf16.h",
    "__nv_fp8": "cuda_fp8.h",
    "__nv_fp4": "cuda_fp4.h",
    "cuFloatComplex": "cuComplex.h",
    "cuDoubleComplex": "cuComplex.h",
    "std::complex": "complex",
    "std::m": "algorithm",
    "cudaStream_t": "cuda_runtime.h",
}
_OWN = ("compute", "run", "i", "place", "stream", "elements")
_RESERVED = ("std", "blockIdx", "blockDim", "threadIdx", "integer_power")


def source(problem: Problem, language: Language) -> str:
    """The text of the file.

    Raises:
        UsageError: the problem has no case where this language runs, or one of its names means something else there.
    """
    suffix = language.suffix
    symbols = signature.symbols(problem, suffix)
    if not symbols:
        what = f"has no case for {' or '.join(language.devices)}, where a .{suffix} file runs"
        raise UsageError(problem.slug, what, "choose another --lang")
    refuse_taken(problem, _RESERVED, "one of CUDA's or of this file's")
    types, dtypes = signature.TYPES[suffix], list(next(iter(symbols.values())))
    own, groups, sizes = free_names(problem, _OWN, *symbols), output_groups(problem), signature.sizes(problem)
    stream = [own["stream"]] if suffix == "cu" else []

    def parameters(chosen: dict[str, str]) -> list[str]:
        """Those of an entry point; `chosen` says what stands for the dtypes that are parameters."""
        return [*signature.arguments(problem, {**types, **chosen}), *(f"cudaStream_t {name}" for name in stream)]

    def kernel_parameters(group: OutputGroup) -> list[str]:
        pointers = [f"{signature.pointer(tensor, types)} {tensor.name}" for tensor in group.passed]
        return [*pointers, *signature.numbers(problem), *["int64_t index"] * (group.count is not None)]

    def kernel_arguments(group: OutputGroup) -> list[str]:
        tensors = [tensor.name + "[index]" * (tensor.count is not None) for tensor in group.passed]
        scalars = [scalar.name for scalar in problem.scalars]
        return [*tensors, *scalars, *sizes, *["index"] * (group.count is not None)]

    def largest(group: OutputGroup) -> str:
        counts = list(dict.fromkeys(product(tensor.shape) for tensor in group.written))
        return counts[0] if len(counts) == 1 else f"std::max<int64_t>({{{', '.join(counts)}}})"

    entries = []
    for name, values in symbols.items():
        chosen = {parameter: types[dtype] for parameter, dtype in values.items()}
        entries.append({"name": name, "types": list(chosen.values()), "parameters": parameters(chosen)})
    code = render(
        f"start/{suffix}.jinja",
        problem=problem,
        call=call,
        **own,
        types=types,
        dtypes=dtypes,
        template=f"template <{', '.join(f'typename {name}' for name in dtypes)}>\n" if dtypes else "",
        groups=groups,
        symbols=entries,
        parameters=parameters({}),
        arguments=[*argument_names(problem), *sizes, *stream],
        kernel_parameters=kernel_parameters,
        kernel_arguments=kernel_arguments,
        largest=largest,
        product=product,
        place_of=place,
    )
    defined = own["compute"] if suffix == "cu" else own["run"] if dtypes else next(iter(symbols))
    headers = sorted({"cstdint", *(header for word, header in _HEADERS.items() if word in code)})
    return render(
        "start/compiled.jinja",
        problem=problem,
        language="CUDA" if suffix == "cu" else "C++",
        filled=defined,
        headers=headers,
        table=table(problem.tensors),
        code=code,
    )
