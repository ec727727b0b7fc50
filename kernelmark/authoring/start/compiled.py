"""A first submission in CUDA or C++: its symbols, argument types and bounds are right, its outputs hold zeros. Trusted.

Outputs of one `count` are written together: tensors by one loop or launch, lists by one for each index.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from harness.errors import UsageError
from harness.languages import Language
from harness.problem import Problem, prototype
from harness.problem.spec import TensorSpec
from kernelmark.authoring.start.calling import arguments_of, free, refuse_taken
from kernelmark.authoring.start.sizes import call, place, product, table

_HEADERS = {
    "__half": "cuda_fp16.h",
    "__nv_bf": "cuda_bf16.h",
    "__nv_fp8": "cuda_fp8.h",
    "__nv_fp4": "cuda_fp4.h",
    "cuFloatComplex": "cuComplex.h",
    "cuDoubleComplex": "cuComplex.h",
    "std::complex": "complex",
    "std::m": "algorithm",
}
_BFLOAT16 = """\
#if __GNUC__ >= 13
using bfloat16 = __bf16;
#else
using bfloat16 = uint16_t;  // its bits, since an older g++ has no such type
#endif
"""
_POWER = """\
static {device}int64_t integer_power(int64_t base, int64_t exponent) {{
    int64_t result = 1;
    while (exponent-- > 0) result *= base;
    return result;
}}
"""
_OWN = ("compute", "run", "i", "place", "stream", "elements")
_TAKEN = ("std", "blockIdx", "blockDim", "threadIdx", "integer_power")
_THREADS = 256


def source(problem: Problem, language: Language) -> str:
    """The text of the file.

    Raises:
        UsageError: the problem has no case where this language runs, or one of its names means something else there.
    """
    symbols = prototype.symbols(problem, language.suffix)
    if not symbols:
        what = f"has no case for {' or '.join(language.devices)}, where a .{language.suffix} file runs"
        raise UsageError(problem.slug, what, "choose another --lang")
    return (_Cuda if language.suffix == "cu" else _Cpp)(problem, language.suffix, symbols).text()


class _Cpp:
    """Writes a file of C++: a function, which is a template if a tensor's dtype is a parameter."""

    language = "C++"
    device = ""

    def __init__(self, problem: Problem, suffix: str, symbols: Mapping[str, Mapping[str, str]]) -> None:
        self.problem, self.symbols = problem, symbols
        self.dtypes, self.sizes = list(next(iter(symbols.values()))), prototype.sizes(problem)
        self.types = prototype.TYPES[suffix]
        taken = {*symbols, *problem.parameters, *arguments_of(problem)}
        self.own = {name: free(name, taken) for name in _OWN}
        self.groups = list(dict.fromkeys(each.count for each in problem.tensors if each.role != "input"))
        refuse_taken(problem, _TAKEN, "one of CUDA's or of this file's")

    def text(self) -> str:
        """The whole file."""
        code = "\n".join(self.functions())
        if "integer_power(" in code:
            code = _POWER.format(device=self.device) + "\n" + code
        headers = {"cstdint", *(file for word, file in _HEADERS.items() if word in code), *self.headers()}
        parts = [
            f"// {self.problem.slug} in {self.language}: it builds, and is wrong until `{self.filled}` is filled in.",
            "\n".join(f"#include <{each}>" for each in sorted(headers)) + "\n",
            *([_BFLOAT16] if "bfloat16" in code and not self.device else []),
            "\n".join(f"// {line}" for line in table(self.problem.tensors)) + "\n",
            code,
        ]
        return "\n".join(parts)

    @property
    def filled(self) -> str:
        """The function that a participant fills in."""
        return self.own["run"] if self.dtypes else next(iter(self.symbols))

    def headers(self) -> Sequence[str]:
        return ()

    def functions(self) -> Iterator[str]:
        """The functions of the file, one after the other."""
        body = [line for group in self.groups for line in self.body(group)]
        if self.dtypes:
            yield self.template() + self.function(f"static void {self.own['run']}", {}, body)
        for name, values in self.symbols.items():
            types = {name: self.types[dtype] for name, dtype in values.items()}
            run = f"{self.own['run']}<{', '.join(types.values())}>({', '.join(self.names())});"
            yield self.function(f'extern "C" void {name}', types, [run] if types else body)

    def template(self) -> str:
        return f"template <{', '.join(f'typename {name}' for name in self.dtypes)}>\n" if self.dtypes else ""

    def function(self, head: str, types: Mapping[str, str], body: Sequence[str]) -> str:
        lines = "".join(f"    {line}\n" for line in body)
        return f"{call(head, self.arguments(types), ' {')}\n{lines}}}\n"

    def arguments(self, types: Mapping[str, str]) -> list[str]:
        """The arguments of an entry point; `types` says what stands for the dtypes that are parameters."""
        return prototype.arguments(self.problem, {**self.types, **types})

    def type(self, spec: TensorSpec) -> str:
        return self.types.get(spec.dtype, spec.dtype)

    def names(self) -> list[str]:
        """What an entry point hands on."""
        return [*arguments_of(self.problem), *self.sizes]

    def written(self, group: int | str | None) -> list[TensorSpec]:
        return [each for each in self.problem.tensors if each.role != "input" and each.count == group]

    def store(self, condition: str, spec: TensorSpec, member: str) -> Iterator[str]:
        """Give element i a value under this condition: zero, or what an inout holds."""
        i = self.own["i"]
        at = f"{member}[{i if spec.strides is None else self.own['place']}]"
        store = f"{at} = {at if spec.role == 'inout' else self.type(spec) + '{}'};"
        if spec.strides is None:
            yield f"{condition} {store}"
            return
        yield f"{condition} {{"
        yield f"    const int64_t {self.own['place']} = {place(spec.shape, spec.strides, i)};"
        yield f"    {store}"
        yield "}"

    def body(self, group: int | str | None) -> Iterator[str]:
        """Loops over the elements of the outputs."""
        i, indent = self.own["i"], ""
        yield "// TODO: compute the outputs. These loops visit every element, in row-major order."
        if group is not None:
            yield f"for (int64_t index = 0; index < {product([group])}; ++index) {{"
            indent = "    "
        for spec in self.written(group):
            elements = product(spec.shape)
            loop = f"for (int64_t {i} = 0; {i} < {elements}; ++{i})"
            member = spec.name + "[index]" * (group is not None)
            yield from (indent + line for line in self.store(loop, spec, member))
        if group is not None:
            yield "}"


class _Cuda(_Cpp):
    """Writes a file of CUDA: a kernel for each kind of outputs, and the function that launches them."""

    language = "CUDA"
    device = "__host__ __device__ "

    @property
    def filled(self) -> str:
        return self.kernel(self.groups[0])

    def headers(self) -> Sequence[str]:
        return ("cuda_runtime.h",)

    def kernel(self, group: int | str | None) -> str:
        number = self.groups.index(group)
        return self.own["compute"] + (f"_{number}" if number else "")

    def arguments(self, types: Mapping[str, str]) -> list[str]:
        return [*super().arguments(types), f"cudaStream_t {self.own['stream']}"]

    def names(self) -> list[str]:
        return [*super().names(), self.own["stream"]]

    def functions(self) -> Iterator[str]:
        for group in self.groups:
            yield self.device_function(group)
        yield from super().functions()

    def handed(self, group: int | str | None) -> list[TensorSpec]:
        """The tensors that a kernel gets: of lists, the members of one index."""
        return [each for each in self.problem.tensors if each.count in (None, group)]

    def device_function(self, group: int | str | None) -> str:
        i = self.own["i"]
        arguments = [f"{prototype.pointer(each, self.types)} {each.name}" for each in self.handed(group)]
        arguments += prototype.numbers(self.problem)
        lines = [f"const int64_t {i} = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;"]
        lines.append("// TODO: compute the outputs. There is a thread for every element, in row-major order.")
        for spec in self.written(group):
            lines += self.store(f"if ({i} < {product(spec.shape)})", spec, spec.name)
        arguments += ["int64_t index"] * (group is not None)
        head = call(f"static __global__ void {self.kernel(group)}", arguments, " {")
        return f"{self.template()}{head}\n" + "".join(f"    {line}\n" for line in lines) + "}\n"

    def body(self, group: int | str | None) -> Iterator[str]:
        """The launch, with a thread for each element of the largest output."""
        many, alone = self.own["elements"], group is None and len(self.groups) == 1
        indent = "" if alone else "    "
        if group is not None:
            yield f"for (int64_t index = 0; index < {product([group])}; ++index) {{"
        elif not alone:
            yield "{"
        counts = list(dict.fromkeys(product(each.shape) for each in self.written(group)))
        most = counts[0] if len(counts) == 1 else f"std::max<int64_t>({{{', '.join(counts)}}})"
        yield f"{indent}const int64_t {many} = {most};"
        given = [each.name + "[index]" * (each.count is not None) for each in self.handed(group)]
        given += [*(each.name for each in self.problem.scalars), *self.sizes, *["index"] * (group is not None)]
        kinds = f"<{', '.join(self.dtypes)}>" if self.dtypes else ""
        blocks = f"unsigned(({many} + {_THREADS - 1}) / {_THREADS})"
        launch = f"{self.kernel(group)}{kinds}<<<{blocks}, {_THREADS}, 0, {self.own['stream']}>>>"
        yield f"{indent}if ({many} > 0)"
        yield from call(f"{indent}    {launch}", given, ";").split("\n")
        if not alone:
            yield "}"
