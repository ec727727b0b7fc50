"""Checks each sandbox by starting one, and how a GPU would reach a container."""

from __future__ import annotations

from collections.abc import Iterator

from harness.errors import SandboxError
from harness.judge.session import Session
from harness.kinds import isolates
from harness.problem import Limits
from harness.sandbox import Provider, gpu
from kernelmark.diagnostics.doctor.diagnostic import Diagnostic
from kernelmark.project.choice import providers
from kernelmark.project.settings import Settings
from kernelmark.text.terminal import visible

LAUNCH_S = 30.0
_LIMITS = Limits(memory_bytes=1 << 30, processes=64, disk_bytes=16 << 20)
LAUNCH_REMEDY = "rebuild the image (`make image`), or see what the daemon and the kernel's log say about it"
GPU_WAYS: dict[gpu.Way, str] = {
    "toolkit": "by the NVIDIA container toolkit",
    "cdi": "by a CDI specification",
    "nodes": "by its device nodes and the driver's libraries",
}


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
    try:
        with Session.start(provider, "cpu", _LIMITS) as session:
            session.connect(LAUNCH_S)
    except SandboxError as error:
        remedy = LAUNCH_REMEDY if "doctor" in error.remedy else error.remedy
        return visible(" ".join(f"no sandbox starts: {error.what}; {remedy}".split()))
    return None


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
