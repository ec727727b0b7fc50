"""Compiles a submission's Triton kernels ahead of time: helper processes call it for many cases, in parallel.

A helper is a process in the runner's sandbox without a context on the device. Its tensors have shapes but no memory,
and Triton only compiles what it launches (`absent_gpu`), into the sandbox's cache, where the runner's calls find it. If
a helper fails, the runner compiles the kernel itself. Untrusted, like all of the runner.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import torch
from torch.overrides import TorchFunctionMode

from harness.runner import triton_start
from harness.runner.absent_gpu import AbsentGpu
from harness.runner.build import import_python
from harness.runner.calls import Calls
from harness.runner.compiling import source_path
from harness.runner.devices import RunnerCpu
from harness.runner.kernel import BuiltKernel
from harness.wire import checks, commands, frame

_CASE_S = 60
_CASE_BYTES = 1 << 29  # that a helper may allocate
# Marks of files that compile something on import, or in processes of their own: doing that twice would take longer.
_COMPILES_OTHERWISE = (b"cpp_extension", b"nvcc", b"torch.compile", b"torch._inductor", b"subprocess")
_CUDA = torch.device("cuda", 0)


class CompileAhead:
    """The helpers of one runner. Create it before the device's context, which helpers must not inherit."""

    def __init__(self) -> None:
        self._socket, helpers = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._first = os.fork()  # it forks the others, in its process group
        if self._first == 0:
            _run(helpers)
        with contextlib.suppress(OSError):  # both processes set the group, so that neither has to wait
            os.setpgid(self._first, self._first)
        helpers.close()
        self._socket.setblocking(False)
        self._calls: list[bool] = []
        self._follows = True

    def begin(self, command: commands.Build, properties: Mapping[str, object]) -> None:
        """Import the submission, whose files are in place, in the helpers.

        `properties`: the device properties that the submission can query.
        """
        source = b"\n".join(path.read_bytes() for path in Path.home().glob("*.py"))
        if b"triton" not in source or any(mark in source for mark in _COMPILES_OTHERWISE):
            self.end()
            return
        with contextlib.suppress(OSError):
            self._socket.send(json.dumps(properties).encode())
        self.tell(command)

    def tell(self, command: commands.Build | commands.Declare | commands.Ahead) -> None:
        """Pass a command to the helpers, unless they have ended or are, or once were, too far behind.

        A case of which they missed a part would spoil the next one.
        """
        try:
            if self._follows:
                frame.send(self._socket, 0, command)
        except (checks.WireError, OSError):
            self._follows = False

    def watch(self) -> None:
        """From now on count the kernels that Triton compiles in this process, if the submission uses it."""
        if (knobs := sys.modules.get("triton.knobs")) and knobs.compilation.listener is None:
            knobs.compilation.listener = lambda *, cache_hit, **_: self._calls.append(cache_hit)

    @property
    def counts(self) -> tuple[int, int]:
        """How many kernels were in the cache at their first launch, and how many had to be compiled then."""
        return self._calls.count(True), self._calls.count(False)

    def finish(self) -> None:
        """Wait, without a time limit, until the helpers have compiled everything; then end them."""
        if self._first:
            self._socket.setblocking(True)
            with contextlib.suppress(OSError):
                frame.send(self._socket, 0, commands.Pack())
                self._socket.recv(1)
        self.end()

    @property
    def ended(self) -> bool:
        """Whether the helpers have ended."""
        return self._first == 0

    def end(self) -> None:
        """End the helpers and the processes that they started. Idempotent."""
        if self._first:
            with contextlib.suppress(OSError):
                os.killpg(self._first, signal.SIGKILL)
            with contextlib.suppress(OSError):
                os.waitpid(self._first, 0)
            self._first = 0
            self._socket.close()


def device_properties() -> dict[str, object]:
    """The GPU's properties that are numbers or strings; empty without a GPU."""
    if not torch.cuda.is_available():
        return {}
    found = torch.cuda.get_device_properties(0)
    values = {name: getattr(found, name) for name in dir(found) if not name.startswith("_")}
    return {name: value for name, value in values.items() if isinstance(value, int | float | str)}


def _run(runner: socket.socket) -> NoReturn:
    """Run the first helper, which imports the submission and forks one helper for each case."""
    try:
        with contextlib.suppress(OSError):
            os.setpgid(0, 0)
        _close_all_but(runner)
        os.nice(19)
        torch.set_num_threads(1)
        _Helpers(runner).serve()
    except BaseException:  # noqa: BLE001  # a process boundary: the submission may raise anything
        pass
    finally:
        os.killpg(0, signal.SIGKILL)  # this also kills this process
        os._exit(0)


def _close_all_but(runner: socket.socket) -> None:
    """Close all other inherited descriptors: the judge and the driver must notice when the runner ends."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nothing, standard)
    for descriptor in [int(path.name) for path in Path("/proc/self/fd").iterdir()]:
        if descriptor > 2 and descriptor != runner.fileno():
            with contextlib.suppress(OSError):
                os.close(descriptor)


class _Helpers:
    def __init__(self, runner: socket.socket) -> None:
        self._runner = runner
        self._kernel: BuiltKernel | None = None
        self._declared: list[commands.TensorArgument] = []
        self._running = 0

    def serve(self) -> None:
        """Execute commands until the runner ends; raises whatever the submission raises on import."""
        properties = json.loads(self._runner.recv(frame.MAX_FRAME_BYTES))
        while True:
            _, command, _ = frame.receive_command(self._runner)
            match command:
                case commands.Build():
                    self._kernel = _import_submission(command, properties)
                case commands.Declare(arguments=arguments):
                    self._declared += arguments
                case commands.Ahead() if self._kernel is not None:
                    self._fork(self._kernel, self._declared, command)
                    self._declared = []
                case commands.Pack():
                    self._wait(0)
                    return

    def _wait(self, most: int) -> None:
        while self._running > most:
            os.wait()
            self._running -= 1

    def _fork(self, kernel: BuiltKernel, declared: Sequence[commands.TensorArgument], command: commands.Ahead) -> None:
        """Compile a case in a new process; first wait until the number of running helpers is below the limit."""
        self._wait(min(command.at_most, len(os.sched_getaffinity(0))) - 1)
        if os.fork() == 0:
            try:
                _compile(kernel, declared, command.bind)
            except BaseException:  # noqa: BLE001  # as above
                pass
            finally:
                os._exit(0)
        self._running += 1


def _import_submission(command: commands.Build, properties: Mapping[str, Any]) -> BuiltKernel:
    source = source_path()
    sys.path.insert(0, str(source.parent))
    # The helper has a HOME of its own, so that it cannot change the runner's files.
    os.environ["HOME"] = os.environ["TMPDIR"] = tempfile.tempdir = tempfile.mkdtemp()
    os.chdir(tempfile.tempdir)
    pretend(properties)
    from triton.backends.nvidia import driver as nvidia
    from triton.runtime import autotuner, driver

    compiles_launchers = hasattr(nvidia, "make_launcher")  # before 3.7, one in C for each signature
    if compiles_launchers:
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            triton_start.link_without_driver(tempfile.tempdir)
    AbsentGpu(command.architecture, launchers=compiles_launchers)

    driver.active.get_active_torch_device = lambda: _CUDA
    driver.active.get_benchmarker = lambda: lambda call, **_: (call(), [0.0, 0.0, 0.0])[1]  # compiles every candidate
    if hasattr(autotuner.Autotuner, "check_disk_cache"):  # it would store times, which mean nothing here
        autotuner.Autotuner.check_disk_cache = lambda _self, _key, _configs, bench: bool(bench())
    with _PretendDevice():
        kernel = import_python(source, command, RunnerCpu())
    triton_start.prepare()  # once, before the helpers of the cases are forked
    return kernel


def _compile(kernel: BuiltKernel, declared: Sequence[commands.TensorArgument], bind: commands.Bind) -> None:
    signal.alarm(_CASE_S)
    used = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmData"))
    limit = int(used.split()[1]) * 1024 + _CASE_BYTES
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    with _PretendDevice():
        window: Any = _ShapesOnly()
        calls = Calls(bind, declared, kernel, RunnerCpu(), window, window, window)
        calls.prepare()
        calls.call(0)


class _ShapesOnly:
    """A window whose tensors have shapes but no memory. Their addresses count as aligned, like those of arguments."""

    def tensor(self, offset: int, shape: tuple[int, ...], dtype: str, strides: tuple[int, ...] = ()) -> torch.Tensor:
        empty = torch.empty(shape, dtype=getattr(torch, dtype), device="meta")
        return torch.empty_strided(shape, strides, dtype=empty.dtype, device="meta") if strides else empty


class _PretendDevice(TorchFunctionMode):
    """Makes tensors without memory that claim to be on the GPU."""

    def __torch_function__(
        self, function: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        if function == torch.Tensor.device.__get__:
            return _CUDA
        if function == torch.Tensor.is_cuda.__get__:  # type: ignore[attr-defined]
            return True
        if function == torch.Tensor.get_device:
            return 0
        if function == torch.Tensor.cuda:
            return args[0]
        if function == torch.device:
            return function(*args, **(kwargs or {}))  # only a name
        return function(*map(_on_meta, args), **{name: _on_meta(value) for name, value in (kwargs or {}).items()})


def _on_meta(value: Any) -> Any:
    on_gpu = value.type == "cuda" if isinstance(value, torch.device) else str(value).partition(":")[0] == "cuda"
    return "meta" if isinstance(value, torch.device | str) and on_gpu else value


def pretend(properties: Mapping[str, Any]) -> None:
    """Make torch.cuda answer queries about the device from these properties, so that the device is not opened."""
    device, stream = SimpleNamespace(**properties), SimpleNamespace(cuda_stream=0, device=_CUDA)
    answers = {
        "is_available": True,
        "is_initialized": True,
        "device_count": 1,
        "current_device": 0,
        "current_stream": stream,
        "get_device_properties": device,
        "get_device_capability": (properties.get("major"), properties.get("minor")),
        "get_device_name": properties.get("name"),
        "synchronize": None,
        "set_device": None,
        "device": contextlib.nullcontext(),
    }
    for name, answer in answers.items():
        setattr(torch.cuda, name, lambda *_, answer=answer, **__: answer)
    torch.cuda._lazy_init = _refuse


def _refuse() -> NoReturn:
    raise RuntimeError("a helper has no device")
