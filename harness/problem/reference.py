"""Runs the organizer's `reference.py`, which defines right answers, and may make inputs. Trusted; imports torch.

The file is part of the problem, so it runs in the judge's process. It must not fail silently: any exception, and any
result that does not match `problem.toml`, becomes an error of one line with the line number in `reference.py`.
"""

from __future__ import annotations

import importlib.util
import inspect
import secrets
import sys
import threading
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from importlib.machinery import SourceFileLoader
from types import CodeType, ModuleType
from typing import Any, NamedTuple, NoReturn

import torch

from harness.errors import DeviceError, ProblemError
from harness.problem.elements import info, numbers, wide
from harness.problem.fill import fill
from harness.problem.load import identify
from harness.problem.problem import Problem
from harness.problem.resolve import ResolvedCase, costs_of_data
from harness.problem.returned import DOUBLE, ReturnedFlaw, Value, inputs, outputs
from harness.problem.spec import TensorSpec
from harness.shared.carrier import assign, carrier


class CaseFacts(NamedTuple):
    """The facts about a case that are passed to `reference` and `compare` if they take the argument `case`."""

    params: Mapping[str, int | torch.dtype]
    dtypes: Mapping[str, torch.dtype]
    """The dtypes in the submission's call, by name of tensor or list; the reference itself may compute in float64."""

    @classmethod
    def of(cls, case: ResolvedCase) -> CaseFacts:
        params = {name: getattr(torch, v) if isinstance(v, str) else v for name, v in case.params.items()}
        return cls(params, {t.list_name or t.name: getattr(torch, t.dtype) for t in case.tensors})


ToleranceCheck = Callable[[str], str | None]
"""Checks an output, by its name, by the problem's tolerance; returns None if it is right, else the reason."""


class Reference:
    """The functions of a problem's `reference.py`: `reference`, and `compare` and `generate` if it defines them."""

    exact = True
    """True: it computes in float64 if its inputs are float64."""

    def __init__(self, problem: Problem, module: ModuleType) -> None:
        self._problem = problem
        self._path = str(problem.directory / "reference.py")
        arguments = [s.name for s in problem.tensors if s.role != "output"] + [s.name for s in problem.scalars]
        self._function, self._takes_case = self._required(module, "reference", arguments, ["case"])
        self._compare, self._compare_takes = None, frozenset[str]()
        if hasattr(module, "compare"):
            wanted = ["got", "inputs", "truth"]
            self._compare, self._compare_takes = self._required(module, "compare", wanted, ["case", "usual"])
        self._generate = self._find_generate(module)
        self.weights_seed = secrets.randbits(62)
        """The seed of the weights that a submission draws when its class is created."""

    @classmethod
    def load(cls, problem: Problem) -> Reference:
        """Import the problem's `reference.py`, under a unique name and without leaving bytecode behind.

        Raises:
            ProblemError: it changed since the problem was loaded, fails at import, or lacks `reference`.
        """
        if problem.foreign is not None:
            what = "has a foreign reference, which runs in a sandbox only"
            raise ProblemError(str(problem.directory), what, "use `check` or `submit`")
        private = problem.private.file.parent if problem.private else None
        if identify(problem.directory, private, final=bool(problem.final_tests)) != problem.sha256:
            raise ProblemError(str(problem.directory), "changed after it was loaded", "load the problem again")
        return cls(problem, _import(problem))

    def release_large(self) -> None:
        """Do nothing: it keeps no memory between calls."""

    def close(self) -> None:
        """Do nothing: it runs in this process."""

    @property
    def compares(self) -> bool:
        """Whether the problem defines `compare`."""
        return self._compare is not None

    def __call__(
        self, tensors: Mapping[str, Value], scalars: Mapping[str, int | float], case: ResolvedCase
    ) -> dict[str, Value]:
        """Compute the outputs, and the final values of the inouts, by name.

        `tensors` contains all inputs and inouts, in the case's dtypes, or with all floats converted to float64 and
        complex numbers to complex128; they are not changed. The function receives them with the strides of the case,
        and None for an absent optional input. Floats are returned as float64 if the inputs are float64, otherwise
        rounded to the output's own dtype; integers always have their own dtype. This may be called under `torch.vmap`,
        which does not detect changed inputs.

        Raises:
            ProblemError: `reference` fails, changes an input, or returns something that does not match problem.toml.
            DeviceError: the device has too little memory for it.
        """
        strides = {t.name: t.strides for t in case.tensors if t.strides is not None}
        read = [spec for spec in self._problem.tensors if spec.role != "output"]
        absent = {spec.name: None for spec in read if spec.present is not None and spec.name not in tensors}
        arguments = {s.name: _argument(tensors[s.name], s, strides) for s in read if s.name not in absent}
        versions = _versions(arguments)
        with torch.no_grad(), _full_precision:
            facts = {"case": CaseFacts.of(case)} if self._takes_case else {}
            returned = self._call(self._function, **arguments, **absent, **scalars, **facts)
        after = _versions(arguments)
        for spec in read:
            if spec.role == "input" and after.get(spec.name) != versions.get(spec.name):
                self._fail(f"changes its input `{spec.name}` in place", "work on a clone")
        specs = [spec for spec in self._problem.tensors if spec.role != "input"]
        try:
            return outputs(returned, specs, case, double=_is_double(tensors))
        except ReturnedFlaw as flaw:
            self._fail(flaw.what, flaw.remedy)

    def compare(
        self,
        got: Mapping[str, Value],
        inputs: Mapping[str, Value],
        truth: Mapping[str, Value],
        case: ResolvedCase | None = None,
        usual: ToleranceCheck | None = None,
    ) -> str | None:
        """Call the problem's own `compare`; returns None if the answer is right, else the reason, on one line.

        If `compare` takes the arguments `case` and `usual`, it gets the facts of the case, and a function that checks
        an output by the tolerance.

        Raises:
            ProblemError: it fails, or returns something other than text or None.
        """
        if self._compare is None:
            raise ProblemError(self._path, "defines no `compare`")
        with torch.no_grad():
            optional = {"case": case and CaseFacts.of(case), "usual": usual}
            taken = {name: optional[name] for name in self._compare_takes}
            why = self._call(self._compare, got=dict(got), inputs=dict(inputs), truth=dict(truth), **taken)
        if why is not None and not isinstance(why, str):
            self._fail(f"`compare` returned {type(why).__name__}", "return None if right, else text", self._compare)
        return " ".join(why.split()) or None if why else None

    @property
    def generates(self) -> bool:
        """Whether the problem defines `generate`."""
        return self._generate is not None

    def generate(self, case: ResolvedCase, generator: torch.Generator) -> dict[str, torch.Tensor]:
        """Make inputs and inouts of one call, on the generator's device, by their names in the case.

        Tensors that are not in the result get their declared fills. The tensors may have any strides.

        Raises:
            ProblemError: `generate` fails, or returns something that does not match problem.toml.
            DeviceError: the device has too little memory for it.
        """
        if self._generate is None:
            raise ProblemError(self._path, "defines no `generate`")
        dtypes = {name: getattr(torch, value) for name, value in case.params.items() if isinstance(value, str)}
        with torch.no_grad(), _full_precision:
            returned = self._call(self._generate, generator=generator, **{**case.params, **dtypes}, **case.options)
        try:
            return inputs(returned, case, generator.device)
        except ReturnedFlaw as flaw:
            self._fail(f"`generate` {flaw.what}", flaw.remedy, self._generate)

    def with_cost(self, case: ResolvedCase, generators: Iterable[torch.Generator]) -> ResolvedCase:
        """The case with its cost, if that depends on generated data: the least cost over these generators.

        Raises:
            ProblemError: `generate` fails, or the cost has no value.
        """
        if not self._problem.cost.of_data:
            return case
        found = []
        for generator in generators:
            totals: dict[str, int] = {}
            lists = {tensor.name: tensor.list_name or tensor.name for tensor in case.tensors}
            for name, tensor in self.generate(case, generator).items():
                if info(tensor.dtype).family == "integer":
                    totals[lists[name]] = totals.get(lists[name], 0) + int(numbers(tensor).sum())
            found.append(costs_of_data(self._problem, case, totals))
        least_bytes, least_flops = (min(of_draws) for of_draws in zip(*found, strict=True))
        return replace(case, minimum_bytes=max(least_bytes, 1), minimum_flops=least_flops)

    def draw(self, case: ResolvedCase, generator: torch.Generator) -> dict[str, torch.Tensor]:
        """Draw inputs and inouts by `generate` or their fills, by name, contiguous, on the generator's device.

        For the lint and for tests. A grading draws other values for the same seed.

        Raises:
            ProblemError: `generate` fails.
        """
        generated = self.generate(case, generator) if self.generates else {}
        drawn = {}
        for tensor in case.tensors:
            if tensor.role != "output":
                made = torch.empty(tensor.shape, dtype=getattr(torch, tensor.dtype), device=generator.device)
                if tensor.name in generated:
                    assign(made, generated[tensor.name])
                else:
                    fill(made, tensor.fill, generator)
                drawn[tensor.name] = made
        return drawn

    def _find_generate(self, module: ModuleType) -> Callable[..., Any] | None:
        """The function `generate`, if there is one; it must take the options of every case."""
        problem = self._problem
        for case in problem.tests + problem.benchmarks:
            fills = [case.fill.get(spec.name, spec.fill) for spec in problem.tensors if spec.role != "output"]
            needed = bool(case.options) or any(fill.kind == "generated" for fill in fills)
            if needed or hasattr(module, "generate"):
                self._required(module, "generate", ["generator", *problem.parameters, *case.options], ())
        return getattr(module, "generate", None)

    def _required(
        self, module: ModuleType, name: str, arguments: list[str], optional: Sequence[str]
    ) -> tuple[Callable[..., Any], frozenset[str]]:
        """A function that must take these arguments, and the optional arguments that it also takes."""
        function = getattr(module, name, None)
        wanted = f"def {name}({', '.join(arguments)})"
        if not inspect.isfunction(function):
            raise ProblemError(self._path, f"defines no function `{name}`", f"define `{wanted}`")
        signature = inspect.signature(function)
        taken = frozenset(signature.parameters).intersection(optional).difference(arguments)
        try:
            signature.bind(**dict.fromkeys([*arguments, *taken]))
        except TypeError as error:
            self._fail(f"`{name}` cannot be called with problem.toml's names ({error})", f"define `{wanted}`", function)
        return function, taken

    def _call(self, function: Callable[..., Any], **arguments: Any) -> Any:
        try:
            return function(**arguments)
        except (Exception, SystemExit) as error:  # the boundary to the organizer's code
            if isinstance(error, torch.OutOfMemoryError) or "_ALLOC_FAILED" in str(error):  # CUDA libraries' own error
                what = f"the device has too little free memory for the reference of {self._problem.slug}"
                raise DeviceError(what, "use a larger one") from error
            raise _failure(self._path, error) from error

    def _fail(self, what: str, remedy: str, function: Callable[..., Any] | None = None) -> NoReturn:
        """Raise a ProblemError with the line of the function's `def`."""
        line = inspect.unwrap(function or self._function).__code__.co_firstlineno
        raise ProblemError(f"{self._path}:{line}", what, remedy)


class NoReference(Reference):
    """Replaces the reference for a baseline that computes something else, whose answers are not checked."""

    def __init__(self) -> None:
        self._compare = self._generate = None
        self.weights_seed = secrets.randbits(62)


class _FullPrecision:
    """Disables TF32 while a reference computes in float32, whose error would otherwise let TF32 submissions pass.

    torch has one such setting for the whole process, in which several threads may grade: the first thread to enter
    changes it, and the last to leave restores it.
    """

    def __init__(self) -> None:
        self._lock, self._inside, self._restore = threading.Lock(), 0, ExitStack()

    def __enter__(self) -> None:
        with self._lock:
            self._inside += 1
            if self._inside == 1:
                self._restore.callback(torch.set_float32_matmul_precision, torch.get_float32_matmul_precision())
                torch.set_float32_matmul_precision("highest")
                flags = torch.backends.cudnn.flags(enabled=True, deterministic=True, allow_tf32=False)
                self._restore.enter_context(flags)

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._restore.close()


_full_precision = _FullPrecision()


class _SourceOnly(SourceFileLoader):
    """Imports from source: no bytecode is read, and none is written next to the organizer's file."""

    def get_code(self, fullname: str) -> CodeType:
        return self.source_to_code(self.get_data(self.path), self.path)


def _import(problem: Problem) -> ModuleType:
    path = str(problem.directory / "reference.py")
    name = f"_kernelmark_reference_{problem.slug}_{problem.sha256[:16]}"
    spec = importlib.util.spec_from_loader(name, _SourceOnly(name, path))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    module.print = _print_aside  # type: ignore[attr-defined]
    # Dataclasses look up their module by name while they are defined.
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:  # the boundary to the organizer's code
        del sys.modules[name]
        raise _failure(path, error) from error
    return module


def _print_aside(*values: object, file: Any = None, **how: Any) -> None:
    """The `print` of `reference.py`: it goes to stderr, since programs read the stdout of commands and of the API."""
    print(*values, file=sys.stderr if file is None else file, **how)


def _failure(path: str, error: BaseException) -> ProblemError:
    """An error of one line for an exception of the organizer's code, with the innermost line of that code."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path]
    line = error.lineno if isinstance(error, SyntaxError) and error.filename == path else lines[-1] if lines else None
    where = path if line is None else f"{path}:{line}"
    return ProblemError(where, f"raised {type(error).__name__}: {str(error).strip() or '(no message)'}")


def _argument(value: Value, spec: TensorSpec, strides: Mapping[str, tuple[int, ...]]) -> Value:
    """The argument with the strides of the case; inouts are copied, since the reference may change them in place."""
    if isinstance(value, list):
        return [_with_strides(t, spec, strides.get(f"{spec.name}[{index}]")) for index, t in enumerate(value)]
    return _with_strides(value, spec, strides.get(spec.name))


def _with_strides(tensor: torch.Tensor, spec: TensorSpec, strides: tuple[int, ...] | None) -> torch.Tensor:
    if strides is None:
        return tensor if spec.role == "input" else tensor.clone()
    held = carrier(tensor)
    return held.new_empty_strided(tensor.shape, strides).copy_(held).view(tensor.dtype)


def _versions(arguments: Mapping[str, Value]) -> dict[str, list[int]]:
    """How often each tensor has been changed in place, as torch counts it."""
    return {n: [t._version for t in (v if isinstance(v, list) else [v])] for n, v in arguments.items()}


def _is_double(tensors: Mapping[str, Value]) -> bool:
    """Whether there are floats or complex numbers, and all of them have 64 bits per part, as for the truth."""
    flat = [t for value in tensors.values() for t in (value if isinstance(value, list) else [value])]
    floats = [t.dtype for t in flat if wide(t.dtype) in DOUBLE]
    return bool(floats) and all(dtype in DOUBLE for dtype in floats)
