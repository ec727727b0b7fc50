"""Simulates a GPU that is absent: Triton compiles for it, but launches nothing.

`serve` uses it when the judge asks for compiled code, or whether Triton's kernels compile. Runs in the runner's
process, untrusted: everything that it reports is a claim.
"""

from __future__ import annotations

import gc
import os
import re
import sys
import traceback
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch

from harness.runner.faults import line_reference

_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
_AUTOTUNER_SKIPS = ("OutOfResources", "PTXASError", "CompileTimeAssertionFailure")


class AbsentGpu:
    """A simulated GPU of one architecture, such as sm_90a, which receives all Triton launches of this process."""

    def __init__(self, architecture: str, *, launchers: bool = False) -> None:
        """`launchers`: also compile the launchers of kernels, which only earlier versions of Triton have."""
        self.refused = ""
        """Why the first launch that failed to compile failed, on one line; or ""."""
        os.environ.pop("TRITON_INTERPRET", None)
        try:
            from triton.backends.compiler import GPUTarget
            from triton.runtime import driver
        except ImportError:
            return  # without Triton nothing is launched
        target = GPUTarget("cuda", int(architecture.removeprefix("sm_").removesuffix("a")), 32)
        driver.set_active(_compile_only(target, _compiled_launcher if launchers else _no_launcher))

    def note(self, error: BaseException) -> None:
        """Keep the exception of a call if a launch failed to compile; others may follow from missing results."""
        frames = [(f.f_globals.get("__name__"), f.f_code.co_name) for f, _ in traceback.walk_tb(error.__traceback__)]
        tuned = any(module == "triton.runtime.autotuner" for module, _ in frames)
        if ("triton.runtime.jit", "run") not in frames or (tuned and type(error).__name__ in _AUTOTUNER_SKIPS):
            return
        with suppress(BaseException):  # converting the participant's exception to text may raise anything
            self.refused = self.refused or _described(error)


def compiled_kernels() -> list[Any]:
    """The kernels that Triton has compiled and that still exist."""
    compiler = sys.modules.get("triton.compiler.compiler")
    return [] if compiler is None else [item for item in gc.get_objects() if type(item) is compiler.CompiledKernel]


def _described(error: BaseException) -> str:
    """The line of the submission, or of its kernel if the compiler names it, and the reason."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if Path(frame.filename).parent == Path.home()]
    at = line_reference(own[-1].filename, own[-1].lineno) if own else ""
    text = f"{type(error).__name__}: {error}"
    cause: BaseException | None = error
    while cause is not None and hasattr(cause, "node"):  # CompilationErrors are chained, one per nested call
        at = _line_of(cause) or at
        text = getattr(cause, "error_message", None) or text
        cause = cause.__cause__
    return ": ".join(filter(None, (at, *_ADDRESS.sub("", text).strip().splitlines()[:1])))


def _line_of(error: Any) -> str:
    """The line at which the compiler failed, if it is a line of the submission."""
    from triton.runtime.jit import JITFunction, get_jit_fn_file_line

    for function in gc.get_objects():
        if type(function) is JITFunction and function.src == error.src:
            file, begins = get_jit_fn_file_line(function)
            line = getattr(error.node, "lineno", None)
            return line_reference(file, begins + line - 1) if line and Path(file).parent == Path.home() else ""
    return ""


def _no_launcher(source: Any, metadata: Any) -> Any:
    return lambda *_, **__: None


def _compiled_launcher(source: Any, metadata: Any) -> Any:
    """Put the kernel's launcher into Triton's cache; gcc takes a quarter of a second for it."""
    with suppress(Exception):  # without a driver it is compiled, but cannot be loaded
        from triton.backends.nvidia.driver import CudaLauncher

        CudaLauncher(source, metadata)
    return _no_launcher(source, metadata)


def _compile_only(target: Any, launcher: Any) -> SimpleNamespace:
    """A Triton driver for a device that compiles but does not run."""
    properties = {"max_shared_mem": 227 << 10, "multiprocessor_count": 132, "max_num_regs": 65536, "warpSize": 32}
    return SimpleNamespace(
        utils=SimpleNamespace(
            get_device_properties=lambda device: properties,
            load_binary=lambda *_: (object(), object(), 0, 0, 1024),
        ),
        launcher_cls=launcher,
        get_current_target=lambda: target,
        get_current_device=lambda: 0,
        get_current_stream=lambda device: 0,
        get_active_torch_device=lambda: torch.device("cpu"),
        get_benchmarker=lambda: lambda call, **_: [0.0, 0.0, 0.0],
    )
