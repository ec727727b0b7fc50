"""What this machine needs before it can grade, found by looking: one finding a check, each with its remedy.

`kernelmark doctor` prints the findings. Trusted. torch is asked in a process of its own, so that a broken installation
is a finding and not a crash.
"""

from __future__ import annotations

import contextlib
import fcntl
import importlib.metadata
import json
import os
import platform
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple

from harness.cupti import Cupti
from harness.errors import DeviceError, KernelmarkError, SandboxError
from harness.sandbox import Exit, Launch, Provider, Sandbox, gpu
from kernelmark.settings import Settings
from kernelmark.text import counted, visible

Status = Literal["ok", "warn", "fail"]

MIN_PYTHON = (3, 11)
MIN_FREE_BYTES, WANTED_FREE_BYTES = 512 << 20, 4 << 30
F_SEAL_FUTURE_WRITE = 0x0010  # not in the fcntl module of Python 3.11
PROBE_S = 120.0
LAUNCH_S, LAUNCH_POLL_S = 30.0, 0.05
LAUNCH_REMEDY = "make the image anew (`make image`), or see what the daemon and the kernel's log say of it"
CPUS = Path("/sys/devices/system/cpu")
GPU_WAYS: dict[gpu.Way, str] = {
    "toolkit": "by the NVIDIA container toolkit",
    "cdi": "by a CDI specification",
    "nodes": "by its device nodes and the driver's libraries",
}

_PROBE = """
import importlib, json
found = {}
for name in ("torch", "triton", "cuda.bindings.driver"):
    try:
        module = importlib.import_module(name)
        found[name] = {"version": getattr(module, "__version__", "")}
    except Exception as error:
        found[name] = {"error": f"{type(error).__name__}: {error}"}
if "version" in found["torch"]:
    import torch
    found["cuda"] = torch.version.cuda
    try:
        found["devices"] = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    except Exception as error:
        found["devices"], found["device_error"] = [], f"{type(error).__name__}: {error}"
print(json.dumps(found))
"""


# What the sandbox runs in place of the runner.
_SANDBOXED = """
import socket, sys
judge = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
judge.connect(sys.argv[1])
"""


class Finding(NamedTuple):
    """One check: `blocks` says that no grading can run while it fails."""

    status: Status
    check: str
    text: str
    remedy: str = ""
    blocks: bool = False


def examine(settings: Settings) -> Iterator[Finding]:
    """Every finding about this machine and this project, in the order in which one would put them right."""
    yield python()
    probe = probe_torch()
    yield from torch_and_triton(probe)
    yield from cuda(probe)
    if probe.get("devices"):
        yield cupti()
    yield compiler("nvcc", ".cu", needed=bool(probe.get("devices")))
    yield compiler("g++", ".cpp", needed=True)
    yield from sandboxes(settings, cuda_is_here=bool(probe.get("devices")))
    yield calibration(settings, probe.get("devices", []))
    yield free_space(Path(tempfile.gettempdir()))
    yield sealing()
    yield clock_frequency(CPUS)
    yield from problems(settings)
    yield from ledgers(settings)


def can_grade(findings: list[Finding]) -> bool:
    """Whether a grading could run here on some device, in some sandbox."""
    return not any(f.status == "fail" and f.blocks for f in findings)


def lines(findings: list[Finding]) -> Iterator[str]:
    """The findings as aligned text, one a line."""
    width = max(len(f.check) for f in findings)
    for f in findings:
        yield f"{f.status:<4}  {f.check:<{width}}  {f.text}" + (f"; {f.remedy}" if f.remedy else "")


def python() -> Finding:
    """The interpreter's version."""
    version = platform.python_version()
    if sys.version_info < MIN_PYTHON:
        return Finding("fail", "python", version, "install Python 3.11 or later", blocks=True)
    return Finding("ok", "python", version)


def probe_torch() -> dict[str, Any]:
    """What a fresh process says of torch, triton, cuda-bindings and the CUDA devices; `failure` if it said nothing."""
    try:
        answer = subprocess.run(
            [sys.executable, "-P", "-c", _PROBE], capture_output=True, text=True, timeout=PROBE_S, check=False
        )
        found: dict[str, Any] = json.loads(answer.stdout.splitlines()[-1])
    except subprocess.TimeoutExpired:
        return {"failure": f"importing torch took longer than {PROBE_S:.0f} s"}
    except (IndexError, json.JSONDecodeError):
        last = answer.stderr.strip().splitlines()[-1:] or [f"exit status {answer.returncode}"]
        return {"failure": f"importing torch ended the process: {last[0]}"}
    return found


def torch_and_triton(probe: dict[str, Any]) -> Iterator[Finding]:
    """Both are there, and are the pair that torch was built with."""
    torch = probe.get("torch", {"error": probe.get("failure", "not asked")})
    if "error" in torch:
        yield Finding("fail", "torch", torch["error"], "install torch 2.11 or later", blocks=True)
        return
    yield Finding("ok", "torch", f"{torch['version']} ({'CUDA ' + probe['cuda'] if probe['cuda'] else 'CPU build'})")
    triton = probe["triton"]
    if "error" in triton:
        yield Finding("warn", "triton", triton["error"], "install triton to grade Triton kernels")
        return
    pin, version = pinned_triton(_requirements("torch")), triton["version"].partition("+")[0]
    if pin not in (None, version):
        yield Finding("warn", "triton", f"{version}, but this torch was built with {pin}", f"install triton=={pin}")
    else:
        yield Finding("ok", "triton", f"{version}, " + ("as torch pins it" if pin else "this torch build pins none"))


def pinned_triton(requirements: list[str]) -> str | None:
    """The triton version that torch's own metadata asks for: `triton==3.6.0; platform_system == "Linux"`."""
    found = (re.match(r"triton\s*\(?==\s*([0-9][0-9a-zA-Z.]*)", requirement) for requirement in requirements)
    return next((match[1] for match in found if match), None)


def cuda(probe: dict[str, Any]) -> Iterator[Finding]:
    """A device is visible, and the judge can share its memory with a runner."""
    devices = probe.get("devices", [])
    if not devices:
        why = probe.get("device_error") or (
            "torch sees no CUDA device" if probe.get("cuda") else "this torch build has no CUDA"
        )
        yield Finding("warn", "CUDA device", why, "on a CPU Triton runs in its interpreter, which measures no speed")
        return
    yield Finding("ok", "CUDA device", ", ".join(devices))
    bindings = probe["cuda.bindings.driver"]
    if "error" in bindings:
        yield Finding("fail", "cuda-bindings", bindings["error"], "pip install 'kernelmark[cuda]' to grade on CUDA")
    else:
        yield Finding("ok", "cuda-bindings", "importable")


def cupti() -> Finding:
    """What a launcher times by; the image, where there is one, has its own."""
    try:
        Cupti()
    except DeviceError as error:
        what = f"{error.what}: calls are not replayed, but timed in sealed rounds"
        return Finding("warn", "CUPTI", what, error.remedy)
    return Finding("ok", "CUPTI", "found: calls can be replayed")


def compiler(name: str, suffix: str, *, needed: bool) -> Finding:
    """A compiler on this machine, as the bwrap and process sandboxes use it."""
    toolkit = gpu.toolkit() if name == "nvcc" else None
    found = str(toolkit / "bin" / name) if toolkit else shutil.which(name)
    if found:
        return Finding("ok", name, found)
    if not needed:
        return Finding("ok", name, f"not found, and not needed without a CUDA device ({suffix} files)")
    return Finding("warn", name, "not found", f"install it to grade {suffix} files outside Docker")


def sandboxes(settings: Settings, *, cuda_is_here: bool) -> Iterator[Finding]:
    """Which providers can be used, and how a GPU would reach a container."""
    from kernelmark.api import providers

    isolated = False
    for provider in providers(settings):
        if provider.name == "process":
            continue
        reason = provider.unavailable() or launch_fails(provider)
        isolated = isolated or reason is None
        yield Finding("warn", provider.name, reason) if reason else Finding("ok", provider.name, "usable")
        if provider.name == "docker" and reason is None and cuda_is_here:
            yield gpu_in_docker()
    if not isolated:
        remedy = "put docker or bwrap right: until then results are ranked apart"
        yield Finding("warn", "isolation", "none: submissions run with your own rights", remedy)


def launch_fails(provider: Provider) -> str | None:
    """Why no sandbox of this provider starts and reaches its judge, found by launching one; None if one does.

    `unavailable` looks at what a grading has no time to try, so an image that cannot start a container passes it.
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
    """Why nothing connects from inside; None as soon as something does."""
    deadline, ended = time.monotonic() + LAUNCH_S, None
    while time.monotonic() < deadline and ended is None:
        ended = sandbox.ended()  # asked first: what ended after it connected has connected
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


def gpu_in_docker() -> Finding:
    """Which of the three ways into a container this daemon offers."""
    import docker

    try:
        way = gpu.way_for_docker(docker.from_env(timeout=30).info())
        if way == "nodes":
            gpu.driver_libraries()
    except (SandboxError, docker.errors.DockerException) as error:
        return Finding("fail", "GPU in docker", str(error))
    return Finding("ok", "GPU in docker", GPU_WAYS[way])


def calibration(settings: Settings, devices: list[str]) -> Finding:
    """Whether it is known what the device can do at most."""
    from harness.judge.environment import cpu_name
    from harness.roofline import choose
    from kernelmark.calibrations import stored

    device = devices[0] if devices else cpu_name()
    try:
        found = choose(stored(settings), device, None)
    except KernelmarkError as error:
        return Finding("fail", "calibration", str(error))
    if found is None:
        return Finding("warn", "calibration", f"none of {device}", "`kernelmark calibrate`, for shares of its roofline")
    return Finding("ok", "calibration", f"{device}, {found.created_at:%Y-%m-%d}")


def free_space(directory: Path) -> Finding:
    """Room for sockets, logs and scratch files."""
    free = shutil.disk_usage(directory).free
    text = f"{free / 2**30:.1f} GiB free in {directory}"
    if free < MIN_FREE_BYTES:
        return Finding("fail", "temp dir", text, "free some, or point TMPDIR elsewhere", blocks=True)
    return Finding("warn" if free < WANTED_FREE_BYTES else "ok", "temp dir", text)


def sealing() -> Finding:
    """Whether inputs on the CPU can be made read-only for good: memfd with F_SEAL_FUTURE_WRITE."""
    try:
        descriptor = os.memfd_create("kernelmark-doctor", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        try:
            fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, F_SEAL_FUTURE_WRITE)
        finally:
            os.close(descriptor)
    except (OSError, AttributeError) as error:
        return Finding("fail", "memfd seals", f"refused ({error})", "run on Linux 5.1 or later", blocks=True)
    return Finding("ok", "memfd seals", "F_SEAL_FUTURE_WRITE works")


def clock_frequency(cpus: Path) -> Finding:
    """Whether the CPU's clock stands still while kernels are timed on it."""
    governor = _text(cpus / "cpu0/cpufreq/scaling_governor")
    turbo = _text(cpus / "intel_pstate/no_turbo") == "0" or _text(cpus / "cpufreq/boost") == "1"
    if governor is None and not turbo:
        return Finding("ok", "CPU clock", "not readable here")
    moving = [f"governor {governor}"] if governor not in (None, "performance") else []
    moving += ["turbo is on"] if turbo else []
    if not moving:
        return Finding("ok", "CPU clock", "governor performance, turbo off")
    remedy = "CPU times move with it: `cpupower frequency-set -g performance`, and switch turbo off"
    return Finding("warn", "CPU clock", ", ".join(moving), remedy)


def problems(settings: Settings) -> Iterator[Finding]:
    """Each problem of the project loads, with its private cases."""
    from kernelmark.project import find_problem, problem_directories

    directories = problem_directories(settings)
    if settings.private_cases is not None:
        yield private_cases(settings, {directory.name for directory in directories})
    if not directories:
        where = str(settings.locate("problems"))
        yield Finding("warn", "problems", f"none under {where}", "run from your project, or set `problems`")
    for directory in directories:
        check = f"problem {directory.name}"
        try:
            private = find_problem(settings, directory).private
        except KernelmarkError as error:
            yield Finding("fail", check, str(error))
        else:
            yield Finding("ok", check, f"loads, with {counted(private.cases, 'private case')}" if private else "loads")


def private_cases(settings: Settings, slugs: set[str]) -> Finding:
    """The folder of private cases is there, for its owner alone, and each file of it belongs to a problem."""
    from kernelmark.project import private_folder

    try:
        folder = private_folder(settings)
        assert folder is not None
        open_to_others = [path for path in (folder, *folder.glob("*.toml")) if path.stat().st_mode & 0o077]
        unknown = sorted(path.name for path in folder.iterdir() if path.suffix == ".toml" and path.stem not in slugs)
    except KernelmarkError as error:
        return Finding("fail", "private cases", str(error))
    except OSError as error:
        return Finding("fail", "private cases", f"{error.filename}: cannot be read ({error.strerror})")
    if unknown:
        return Finding(
            "warn", "private cases", f"{folder}: {', '.join(unknown)}: no such problem", "rename or remove it"
        )
    if open_to_others:
        path = open_to_others[0]
        return Finding("warn", "private cases", f"others have rights on {path}", f"chmod -R go= {folder}")
    return Finding("ok", "private cases", str(folder))


def ledgers(settings: Settings) -> Iterator[Finding]:
    """Each ledger's chain holds."""
    from leaderboard.ledger import JsonlLedger

    for path in sorted(settings.locate("results").glob("*.jsonl")):
        check = f"ledger {path.stem}"
        finding = _told(check, JsonlLedger(path).verify)
        yield finding or Finding("ok", check, "its chain holds")


def _told(check: str, call: Callable[[], object]) -> Finding | None:
    """The failure of `call` as a finding; None when it succeeds."""
    try:
        call()
    except KernelmarkError as error:
        return Finding("fail", check, str(error))
    return None


def _requirements(distribution: str) -> list[str]:
    try:
        return importlib.metadata.requires(distribution) or []
    except importlib.metadata.PackageNotFoundError:
        return []


def _text(path: Path) -> str | None:
    try:
        return path.read_text().strip()
    except OSError:
        return None
