"""Compiles a submission's Triton kernels ahead: helpers call it for all cases that it may know, side by side.

A helper is a process of the runner's sandbox without a context on the device. Its tensors have shapes but no memory,
and whatever Triton launches is compiled only (`absent_gpu`), into the sandbox's own cache, where the runner's calls
find it. What fails in a helper is compiled by the runner, as if there were none. Untrusted, as all of the runner.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import socket
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import torch
from torch.overrides import TorchFunctionMode

from harness.runner import triton_key
from harness.runner.absent_gpu import AbsentGpu
from harness.runner.build import import_python
from harness.runner.calls import Calls
from harness.runner.compiling import source_path
from harness.runner.devices import RunnerCpu
from harness.runner.kernel import BuiltKernel
from harness.wire import checks, commands, frame

_CASE_S = 60
_CASE_BYTES = 1 << 29  # what a helper may allocate
# Files that are compiled on import, or by a compiler with processes of its own: to do that twice would take longer.
_COMPILES_OTHERWISE = (b"cpp_extension", b"nvcc", b"torch.compile", b"torch._inductor", b"subprocess")
_CUDA = torch.device("cuda", 0)


class CompileAhead:
    """The helpers of one runner. Make it before the device's context, which no helper may inherit."""

    def __init__(self) -> None:
        self._socket, helpers = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._first = os.fork()  # the others follow from it, in its process group
        if self._first == 0:
            _run(helpers)
        with contextlib.suppress(OSError):  # whichever is first
            os.setpgid(self._first, self._first)
        helpers.close()
        self._socket.setblocking(False)
        self._calls: list[bool] = []

    def begin(self, command: commands.Build, properties: Mapping[str, object]) -> None:
        """Import the submission, which is in its place, in the helpers, too.

        `properties`: those of the device, for a submission that asks.
        """
        source = b"\n".join(path.read_bytes() for path in Path.home().glob("*.py"))
        if b"triton" not in source or any(mark in source for mark in _COMPILES_OTHERWISE):
            self.end()
            return
        with contextlib.suppress(OSError):
            self._socket.send(json.dumps(properties).encode())
        self.tell(command)

    def tell(self, command: commands.Build | commands.Declare | commands.Ahead) -> None:
        """Pass a command on, unless the helpers have ended or are too far behind."""
        with contextlib.suppress(checks.WireError, OSError):
            frame.send(self._socket, 0, command)

    def watch(self) -> None:
        """Count the kernels that Triton compiles from here on in this process, if the submission uses it."""
        if (knobs := sys.modules.get("triton.knobs")) and knobs.compilation.listener is None:
            knobs.compilation.listener = lambda *, cache_hit, **_: self._calls.append(cache_hit)

    @property
    def counts(self) -> tuple[int, int]:
        """How many kernels were in the cache when they were first launched, and how many had to be compiled then."""
        return self._calls.count(True), self._calls.count(False)

    def finish(self) -> None:
        """Wait until they have compiled all that they were told of, as long as it takes; they have ended then."""
        if self._first:
            self._socket.setblocking(True)
            with contextlib.suppress(OSError):
                frame.send(self._socket, 0, commands.Pack())
                self._socket.recv(1)
        self.end()

    @property
    def ended(self) -> bool:
        """Whether there are none any more."""
        return self._first == 0

    def end(self) -> None:
        """End the helpers and what they started. Idempotent."""
        if self._first:
            with contextlib.suppress(OSError):
                os.killpg(self._first, signal.SIGKILL)
            with contextlib.suppress(OSError):
                os.waitpid(self._first, 0)
            self._first = 0
            self._socket.close()


def device_properties() -> dict[str, object]:
    """Those of the GPU that are numbers or texts; none without one."""
    if not torch.cuda.is_available():
        return {}
    found = torch.cuda.get_device_properties(0)
    values = {name: getattr(found, name) for name in dir(found) if not name.startswith("_")}
    return {name: value for name, value in values.items() if isinstance(value, int | float | str)}


def _run(runner: socket.socket) -> NoReturn:
    """The first helper: it imports the submission, and forks one helper for each case."""
    try:
        with contextlib.suppress(OSError):
            os.setpgid(0, 0)
        _keep_only(runner)
        os.nice(19)
        torch.set_num_threads(1)
        _Helpers(runner).serve()
    except BaseException:  # noqa: BLE001  # a process boundary: the submission may raise anything
        pass
    finally:
        os.killpg(0, signal.SIGKILL)  # this process, too
        os._exit(0)


def _keep_only(runner: socket.socket) -> None:
    """Close everything else that was inherited: the judge must see when the runner has gone, and so must the driver."""
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
        """Obey until the runner ends; raises what the submission raises when it is imported."""
        properties = json.loads(self._runner.recv(frame.MAX_FRAME_BYTES))
        while True:
            _, command, _ = frame.receive_command(self._runner)
            match command:
                case commands.Build():
                    self._kernel = _imported(command, properties)
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
        """Compile a case in a process of its own, once fewer than as many as allowed are running."""
        self._wait(min(command.at_most, len(os.sched_getaffinity(0))) - 1)
        if os.fork() == 0:
            try:
                _compile(kernel, declared, command.bind)
            except BaseException:  # noqa: BLE001  # as above
                pass
            finally:
                os._exit(0)
        self._running += 1


def _imported(command: commands.Build, properties: Mapping[str, Any]) -> BuiltKernel:
    source = source_path()
    sys.path.insert(0, str(source.parent))
    # What it writes there is its own, and not the runner's.
    os.environ["HOME"] = os.environ["TMPDIR"] = tempfile.tempdir = tempfile.mkdtemp()
    os.chdir(tempfile.tempdir)
    pretend(properties)
    AbsentGpu(command.architecture)
    from triton.runtime import autotuner, driver

    driver.active.get_active_torch_device = lambda: _CUDA
    driver.active.get_benchmarker = lambda: lambda call, **_: (call(), [0.0, 0.0, 0.0])[1]  # compiles every candidate
    if hasattr(autotuner.Autotuner, "check_disk_cache"):  # the times that it would keep there are none
        autotuner.Autotuner.check_disk_cache = lambda _self, _key, _configs, bench: bool(bench())
    with _OnNothing():
        kernel = import_python(source, command, RunnerCpu())
    triton_key.prepare()  # once, before the helpers of the cases are forked
    return kernel


def _compile(kernel: BuiltKernel, declared: Sequence[commands.TensorArgument], bind: commands.Bind) -> None:
    signal.alarm(_CASE_S)
    used = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmData"))
    limit = int(used.split()[1]) * 1024 + _CASE_BYTES
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    with _OnNothing():
        window: Any = _NoMemory()
        calls = Calls(bind, declared, kernel, RunnerCpu(), window, window, window)
        calls.prepare()
        calls.call(0)


class _NoMemory:
    """A window whose tensors have a shape alone; their address is aligned, as that of every argument is."""

    def tensor(self, offset: int, shape: tuple[int, ...], dtype: str, strides: tuple[int, ...] = ()) -> torch.Tensor:
        empty = torch.empty(shape, dtype=getattr(torch, dtype), device="meta")
        return torch.empty_strided(shape, strides, dtype=empty.dtype, device="meta") if strides else empty


class _OnNothing(TorchFunctionMode):
    """What is on the GPU has no memory, and says that it is there."""

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
        return function(*map(_elsewhere, args), **{name: _elsewhere(value) for name, value in (kwargs or {}).items()})


def _elsewhere(value: Any) -> Any:
    on_gpu = value.type == "cuda" if isinstance(value, torch.device) else str(value).partition(":")[0] == "cuda"
    return "meta" if isinstance(value, torch.device | str) and on_gpu else value


def pretend(properties: Mapping[str, Any]) -> None:
    """Answer what a submission asks of the device, so that it need not be opened."""
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
