"""Checks each sandbox by starting one, and how a GPU would reach a container."""

from __future__ import annotations

import contextlib
import socket
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from harness.errors import SandboxError
from harness.kinds import isolates
from harness.sandbox import Exit, Launch, Provider, Sandbox, gpu
from kernelmark.diagnostics.doctor.diagnostic import Diagnostic
from kernelmark.project.choice import providers
from kernelmark.project.settings import Settings
from kernelmark.text.terminal import visible

LAUNCH_S, LAUNCH_POLL_S = 30.0, 0.05
LAUNCH_REMEDY = "rebuild the image (`make image`), or see what the daemon and the kernel's log say about it"
GPU_WAYS: dict[gpu.Way, str] = {
    "toolkit": "by the NVIDIA container toolkit",
    "cdi": "by a CDI specification",
    "nodes": "by its device nodes and the driver's libraries",
}


# What the sandbox runs in place of the runner.
_SANDBOXED = """
import socket, sys
judge = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
judge.connect(sys.argv[1])
"""


def usable(settings: Settings, *, cuda_is_here: bool) -> Iterator[Diagnostic]:
    """Which providers can be used, and how a GPU would reach a container."""
    isolated = False
    for provider in providers(settings):
        if not isolates(provider.name):
            continue
        reason = provider.unavailable() or launch_fails(provider)
        isolated = isolated or reason is None
        yield Diagnostic("warn", provider.name, reason) if reason else Diagnostic("ok", provider.name, "usable")
        if provider.name == "docker" and reason is None and cuda_is_here:
            yield gpu_in_docker()
    if not isolated:
        remedy = "get docker or bwrap working: until then results are ranked separately"
        yield Diagnostic("warn", "isolation", "none: submissions run with your own rights", remedy)


def launch_fails(provider: Provider) -> str | None:
    """Launch a sandbox of this provider; why it does not start or reach its judge, None if it does.

    `Provider.unavailable` does not launch anything, so it does not notice an image that cannot start a container.
    """
    with tempfile.TemporaryDirectory(prefix="kernelmark-doctor-") as made, contextlib.ExitStack() as stack:
        folder = Path(made)
        program = folder / "program.py"
        program.write_text(_SANDBOXED)
        program.chmod(0o644)  # read by another user
        listener = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
        listener.bind(str(folder / "socket"))
        (folder / "socket").chmod(0o666)
        listener.listen(1)
        listener.settimeout(LAUNCH_POLL_S)
        launch = Launch(
            socket=folder / "socket",
            device="cpu",
            memory_bytes=1 << 30,
            processes=64,
            disk_bytes=16 << 20,
            program=program,
        )
        try:
            sandbox = provider.launch(launch)
            stack.callback(sandbox.close)
            return _unreached(sandbox, listener)
        except SandboxError as error:
            return f"no sandbox starts: {error}"


def _unreached(sandbox: Sandbox, listener: socket.socket) -> str | None:
    """Why nothing connects from inside the sandbox; None as soon as something does."""
    deadline, ended = time.monotonic() + LAUNCH_S, None
    while time.monotonic() < deadline and ended is None:
        ended = sandbox.ended()  # before accepting, so that a sandbox that connects and then ends counts as connected
        try:
            listener.accept()[0].close()
            return None
        except TimeoutError:
            continue
    how = f"the sandbox ended at once ({_how(ended)})" if ended else f"the sandbox is silent for {LAUNCH_S:.0f} s"
    printed = visible(" ".join(sandbox.startup_log().split()))[-300:]
    return f"no sandbox starts: {how}" + (f", it printed: {printed}" if printed else "") + f"; {LAUNCH_REMEDY}"


def _how(ended: Exit) -> str:
    return f"exit status {ended.code}" if ended.signal is None else f"signal {ended.signal}"


def gpu_in_docker() -> Diagnostic:
    """Which of the three ways into a container this daemon offers."""
    import docker

    try:
        way = gpu.way_for_docker(docker.from_env(timeout=30).info())
        if way == "nodes":
            gpu.driver_libraries()
    except (SandboxError, docker.errors.DockerException) as error:
        return Diagnostic("fail", "GPU in docker", str(error))
    return Diagnostic("ok", "GPU in docker", GPU_WAYS[way], part_of="machine")
