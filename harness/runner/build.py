"""Builds a submission inside the sandbox: imports Python, or compiles C++ or CUDA and loads the library.

The C entry points take pointers in the order of the problem's tensors, then scalars, then the sizes as int64_t, and for
CUDA the stream. Runs in the runner's process, untrusted.
"""

from __future__ import annotations

import ctypes
import importlib.util
import inspect
import os
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch

from harness.arena.shapes import address_of
from harness.languages import LANGUAGES
from harness.runner import interpreter
from harness.runner.compiling import CompileError, compile_for_thread_stream, compile_source, compiles_cuda, source_path
from harness.runner.device import RunnerDevice
from harness.runner.kernel import BuiltKernel, OneCall, Prepare, scalar_values
from harness.runner.styles import PythonKernel
from harness.wire import commands


def build(command: commands.Build, device: RunnerDevice) -> tuple[BuiltKernel, str]:
    """Build the source, which is already in place; returns the kernel and the log."""
    compiler = LANGUAGES[command.language].compiler
    if compiles_cuda(command.language):
        compile_for_thread_stream()
        device.follow_default_stream()
    if compiler is None:
        return import_python(source_path(), command, device), ""
    library, log = compile_source(command, compiler)
    return _Library(library, command, device), log


def import_python(path: Path, command: commands.Build, device: RunnerDevice) -> BuiltKernel:
    """Import the file as the module `submission`; returns its function, or class, as a kernel."""
    [name] = command.symbols
    if os.environ.get("TRITON_INTERPRET") == "1":
        interpreter.complete()
    # It must be a real file with an importable name, since Triton reads the source of kernels by `inspect`.
    spec = importlib.util.spec_from_file_location("submission", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["submission"] = module
    spec.loader.exec_module(module)
    entry = getattr(module, name, None)
    if not callable(entry):
        kind, is_kind = ("class", inspect.isclass) if command.style == "module" else ("function", inspect.isfunction)
        defined = ", ".join(n for n, v in vars(module).items() if is_kind(v)) or "none"
        raise CompileError(f"no {kind} `{name}` is defined (found: {defined}); it is called as {command.signature}")
    return PythonKernel(
        entry, style=command.style, signature=command.signature, device=device.kind, converts=command.converts
    )


class _Library:
    """A compiled submission, called through ctypes."""

    def __init__(self, path: Path, command: commands.Build, device: RunnerDevice) -> None:
        language = LANGUAGES[command.language]
        self._stream = language.compiler is not None and language.compiler.takes_stream
        self._device = device
        self._loaded = ctypes.CDLL(str(path)) if device.kind in language.devices else None
        if self._loaded is None:
            return  # for example a .cu without a GPU: it compiled, and the judge will refuse to go on
        for symbol in command.symbols:
            if not hasattr(self._loaded, symbol):
                raise CompileError(f'no symbol `{symbol}`; declare it as extern "C" void {symbol}(...)')
            getattr(self._loaded, symbol).restype = None
        if self._stream and (functions := device.allocator()):
            self._loaded.kernelmark_allocate_with(*map(ctypes.c_void_p, functions))

    def bind(self, bind: commands.Bind, declared: Sequence[commands.TensorArgument]) -> Prepare:
        scalars = scalar_values(bind)

        def prepare(tensors: Sequence[Any]) -> OneCall:
            return partial(self._call, bind.symbol, tensors, scalars, bind.sizes)

        return prepare

    def _call(self, symbol: str, tensors: Sequence[Any], scalars: Sequence[int | float], sizes: Sequence[int]) -> None:
        arguments: list[Any] = [_pointer(t) for t in tensors]
        arguments += [ctypes.c_int64(s) if isinstance(s, int) else ctypes.c_double(s) for s in scalars]
        arguments += [ctypes.c_int64(s) for s in sizes]
        if self._stream:
            arguments.append(ctypes.c_void_p(self._device.stream()))
        getattr(self._loaded, symbol)(*arguments)
        if self._stream and (status := self._loaded.kernelmark_last_error()):  # type: ignore[union-attr]
            raise RuntimeError(f"a kernel launch failed with CUDA error {status} ({_error_name(status)})")


def _pointer(argument: torch.Tensor | list[torch.Tensor] | None) -> Any:
    if argument is None:
        return ctypes.c_void_p(None)
    if isinstance(argument, list):
        return (ctypes.c_void_p * len(argument))(*[t.data_ptr() or address_of(t) for t in argument])
    return ctypes.c_void_p(argument.data_ptr() or address_of(argument))


def _error_name(status: int) -> str:
    from cuda.bindings import runtime

    return str(runtime.cudaError_t(status).name)
