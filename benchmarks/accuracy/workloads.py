"""The kernels that every protocol times: each is a case of a problem here, with the submission that is graded.

`bind` makes a workload callable in this process, from the same source that the harness grades: Python is imported, and
CUDA is compiled and called through ctypes, as the runner does. Trusted; the benchmarks call it. Names are
`problem/case`: `spin/10 us`, `copy/1 MB`, `matmul_bf16/8192`.
"""

from __future__ import annotations

import ctypes
import hashlib
import importlib.util
import math
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import torch

from harness.problem import Case, Problem, ResolvedTensor, load

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
BUILD = ROOT / "build" / "accuracy"
SOURCES = {
    "spin": HERE / "kernels" / "spin.cu",
    "copy": HERE / "kernels" / "copy.cu",
    "softmax_4096": ROOT / "reference" / "softmax" / "triton.py",
    "matmul_bf16": ROOT / "reference" / "matmul" / "eager.py",
    "layernorm3": HERE / "kernels" / "layernorm3.py",
    "forkjoin": HERE / "kernels" / "forkjoin.py",
}
MOST_SETS = 2048  # as many calls as the judge puts into a batch
MOST_BYTES = 12 << 30
MOST_US = 100_000.0
TOLERANCE = {torch.float32: 1e-5, torch.bfloat16: 1e-2}  # relative RMS; a coarse check, the judge's is stricter


@dataclass(frozen=True)
class Workload:
    """One benchmark case of a problem under `benchmarks/accuracy/problems`, with the source that solves it."""

    problem: Problem
    case: Case
    source: Path

    @property
    def name(self) -> str:
        return f"{self.problem.slug}/{self.case.name}"

    @property
    def known_us(self) -> float | None:
        """How long the kernel waits by the global timer, to within one tick; None if it is not known."""
        ns = self.case.params.get("ns")
        return None if ns is None else int(ns) / 1e3

    def sets(self, l2_bytes: int) -> int:
        """The number of input sets: at least 16 and twice the L2 in inputs, within limits on calls, memory and time."""
        tensors = self.problem.resolve(self.case).tensors
        inputs = sum(_bytes(t) for t in tensors if t.role != "output")
        wanted = max(16, -(-2 * l2_bytes // inputs))
        most = min(MOST_SETS, MOST_BYTES // sum(_bytes(t) for t in tensors))
        if self.known_us is not None:
            most = min(most, int(MOST_US / self.known_us))
        return max(2, min(wanted, most))

    def bind(self, sets: int) -> Bound:
        """The kernel, bound to `sets` new sets of tensors on the current device."""
        return Bound(self, sets)


class Bound:
    """A kernel with its memory: called with k, it enqueues the call on input set k on the current stream."""

    def __init__(self, workload: Workload, sets: int) -> None:
        case = workload.problem.resolve(workload.case)
        self._workload = workload
        self._inputs = {t.name for t in case.tensors if t.role != "output"}
        self._outputs = [t.name for t in case.tensors if t.role == "output"]
        self._stacks = {t.name: _stack(t, sets) for t in case.tensors}
        arguments = [[stack[k] for stack in self._stacks.values()] for k in range(sets)]
        if workload.source.suffix == ".cu":
            sizes = [v for p in workload.problem.parameters if isinstance(v := case.params[p], int)]
            function = cuda_function(workload.source, case.symbol, len(case.tensors), len(sizes))
            self._calls = [_call_cuda(function, [t.data_ptr() for t in argument], sizes) for argument in arguments]
        else:
            entry = getattr(_module(workload.source), case.symbol)
            self._calls = [_call_python(entry, argument) for argument in arguments]

    def __call__(self, k: int) -> None:
        self._calls[k]()

    def check(self, k: int) -> None:
        """Compare the output of call k with the problem's reference.

        Raises:
            AssertionError: it is wrong, or was never written.
        """
        reference = _module(self._workload.problem.directory / "reference.py").reference
        torch.cuda.synchronize()
        want = reference(**{name: self._stacks[name][k] for name in self._inputs}).float()
        [output] = self._outputs
        got = self._stacks[output][k]
        error = float(((got.float() - want).norm() / want.norm()).item())
        if not error <= TOLERANCE[got.dtype]:  # so that NaN fails
            raise AssertionError(f"{self._workload.name}: call {k} is wrong, relative RMS error {error:.2e}")


@cache
def workloads() -> tuple[Workload, ...]:
    """All workloads, in the order of the table."""
    result = []
    for slug, source in SOURCES.items():
        problem = load(HERE / "problems" / slug)
        result += [Workload(problem, case, source) for case in problem.benchmarks]
    return tuple(result)


def find(name: str) -> Workload:
    """The workload of that name.

    Raises:
        KeyError: there is none.
    """
    return {workload.name: workload for workload in workloads()}[name]


def globaltimer_step_ns() -> int:
    """The tick of the device's global timer: the duration of a spin is known to within it."""
    step = torch.empty(1, dtype=torch.int64, device="cuda")  # not zeroed: a fill kernel would be in ncu's report
    cuda_function(HERE / "kernels" / "globaltimer.cu", "globaltimer_step", 1, 0)(step.data_ptr(), _stream())
    return int(step.item())


@cache
def cuda_function(source: Path, symbol: str, pointers: int, sizes: int) -> Callable[..., None]:
    """The C function of a compiled `.cu`, taking pointers, sizes and a stream as plain ints."""
    major, minor = torch.cuda.get_device_capability()
    function = getattr(ctypes.CDLL(str(compile_cuda(source, f"sm_{major}{minor}"))), symbol)
    function.restype = None
    function.argtypes = [ctypes.c_void_p] * pointers + [ctypes.c_int64] * sizes + [ctypes.c_void_p]
    return function  # type: ignore[no-any-return]


def compile_cuda(source: Path, architecture: str) -> Path:
    """Compile a `.cu` with the runner's options, unless the same source has been compiled before.

    Raises:
        RuntimeError: there is no nvcc, or it refused the source.
    """
    identity = hashlib.sha256(source.read_bytes() + architecture.encode()).hexdigest()[:16]
    library = BUILD / f"{source.stem}-{identity}.so"
    if library.exists():
        return library
    compiler = shutil.which("nvcc")
    if compiler is None:
        raise RuntimeError("no nvcc on the PATH")
    BUILD.mkdir(parents=True, exist_ok=True)
    made = library.with_suffix(f".{os.getpid()}")
    options = ["-shared", "-Xcompiler", "-fPIC", f"-arch={architecture}", "-O3", "-std=c++17"]
    ended = subprocess.run([compiler, *options, "-o", str(made), str(source)], capture_output=True, text=True)
    if ended.returncode != 0:
        raise RuntimeError(f"{source.name} does not compile: {ended.stdout}{ended.stderr}")
    made.rename(library)
    return library


@cache
def _module(path: Path) -> Any:
    name = f"accuracy_{path.parent.name}_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _bytes(tensor: ResolvedTensor) -> int:
    return math.prod(tensor.shape) * int(getattr(torch, tensor.dtype).itemsize)


def _stack(tensor: ResolvedTensor, sets: int) -> torch.Tensor:
    """One tensor for each set: normal inputs, like the judge's, and outputs of NaN, so that unwritten elements show."""
    stack = torch.empty(sets, *tensor.shape, dtype=getattr(torch, tensor.dtype), device="cuda")
    return stack.fill_(torch.nan) if tensor.role == "output" else stack.normal_()


def _stream() -> int:
    return int(torch.cuda.current_stream().cuda_stream)


def _call_cuda(function: Callable[..., None], pointers: list[int], sizes: list[int]) -> Callable[[], None]:
    return lambda: function(*pointers, *sizes, _stream())


def _call_python(entry: Callable[..., None], tensors: list[torch.Tensor]) -> Callable[[], None]:
    return lambda: entry(*tensors)
