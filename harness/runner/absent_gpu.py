"""A GPU that is not there: Triton compiles for it, and launches nothing.

`serve` calls it when the judge asks for the code or wants to know whether there is any. Runs in the runner's process,
untrusted: what it says is a claim.
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

from harness.runner.faults import place

_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
_AUTOTUNER_SKIPS = ("OutOfResources", "PTXASError", "CompileTimeAssertionFailure")


class AbsentGpu:
    """Of one architecture, such as sm_90. While the process lives, all of Triton's launches go to it."""

    def __init__(self, architecture: str) -> None:
        self.refused = ""
        """Why a launch could not be compiled: the first one, as a line."""
        os.environ.pop("TRITON_INTERPRET", None)
        try:
            from triton.backends.compiler import GPUTarget
            from triton.runtime import driver
        except ImportError:
            return  # nothing here needs it
        driver.set_active(_Nowhere(GPUTarget("cuda", int(architecture.removeprefix("sm_")), 32)))

    def note(self, error: BaseException) -> None:
        """Keep what a call raised, if it was a launch that could not be compiled: other calls may fail because nothing
        is computed here.
        """
        frames = [(f.f_globals.get("__name__"), f.f_code.co_name) for f, _ in traceback.walk_tb(error.__traceback__)]
        tuned = any(module == "triton.runtime.autotuner" for module, _ in frames)
        if ("triton.runtime.jit", "run") not in frames or (tuned and type(error).__name__ in _AUTOTUNER_SKIPS):
            return
        with suppress(BaseException):  # whatever the participant's own exception does
            self.refused = self.refused or _told(error)


def compiled_kernels() -> list[Any]:
    """The kernels that Triton compiled by now and that are still in use."""
    compiler = sys.modules.get("triton.compiler.compiler")
    return [] if compiler is None else [e for e in gc.get_objects() if type(e) is compiler.CompiledKernel]


def _told(error: BaseException) -> str:
    """The line of the submission, in a kernel if the compiler tells which, and the reason."""
    frames = traceback.extract_tb(error.__traceback__)
    at = next((place(f.filename, f.lineno) for f in reversed(frames) if Path(f.filename).parent == Path.home()), "")
    text = f"{type(error).__name__}: {error}"
    cause: BaseException | None = error
    while cause is not None and hasattr(cause, "node"):  # a CompilationError: each call on the way has its own
        at = _line_of(cause) or at
        text = getattr(cause, "error_message", None) or text
        cause = cause.__cause__
    return ": ".join(filter(None, (at, *_ADDRESS.sub("", text).strip().splitlines()[:1])))


def _line_of(error: Any) -> str:
    """Where the compiler was, if that is a line of the submission."""
    from triton.runtime.jit import JITFunction, get_jit_fn_file_line

    for function in gc.get_objects():
        if type(function) is JITFunction and function.src == error.src:
            file, begins = get_jit_fn_file_line(function)
            line = getattr(error.node, "lineno", None)
            return place(file, begins + line - 1) if line and Path(file).parent == Path.home() else ""
    return ""


class _Nowhere:
    """A Triton driver whose device compiles and does not run."""

    def __init__(self, target: Any) -> None:
        self._target = target
        properties = {"max_shared_mem": 227 << 10, "multiprocessor_count": 132, "max_num_regs": 65536, "warpSize": 32}
        self.utils = SimpleNamespace(
            get_device_properties=lambda device: properties,
            load_binary=lambda *_: (object(), object(), 0, 0, 1024),
        )

    def launcher_cls(self, source: object, metadata: object) -> Any:
        return lambda *_, **__: None

    def get_current_target(self) -> Any:
        return self._target

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int) -> int:
        return 0

    def get_active_torch_device(self) -> Any:
        import torch

        return torch.device("cpu")

    def get_benchmarker(self) -> Any:
        return lambda call, **_: [0.0, 0.0, 0.0]
