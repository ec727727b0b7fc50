"""Chooses the device and the sandbox for a submission. Trusted; imports no torch."""

from __future__ import annotations

import ctypes
import importlib.util
import uuid
from pathlib import Path
from typing import NamedTuple

from harness import sandbox as sandboxes
from harness.device.cpu import cpu_name
from harness.errors import UsageError
from harness.kinds import isolates
from harness.languages import LANGUAGES
from harness.sandbox import Provider
from harness.verdict import DeviceKind
from kernelmark.project.problems import private_folder
from kernelmark.project.settings import DeviceChoice, Settings

_NOT_INITIALIZED = 3  # CUDA_ERROR_NOT_INITIALIZED: cuInit was called before a fork


def choose_device(choice: DeviceChoice, language: str) -> DeviceKind:
    """The device for a submission: the requested one, else CUDA if there is a device and the language can use it.

    Without a CUDA device, a `.cu` file is compiled on the CPU and then refused with the reason.

    Raises:
        UsageError: there is no such device, the language cannot run on it, or torch is not installed.
    """
    refuse_without_torch()
    if "cuda" not in LANGUAGES[language].devices:
        if choice == "cuda":
            raise UsageError("device cuda", f"a .{language} file runs on a CPU", "leave the device out")
        return "cpu"
    if choice == "cpu":
        return "cpu"
    if not cuda_is_here():
        if choice == "auto":
            return "cpu"
        remedy = "`kernelmark doctor` says why; the device cpu grades a .py file without one"
        raise UsageError("device cuda", "needs a GPU, and torch finds none here", remedy)
    return "cuda"


def refuse_without_torch() -> None:
    """Raise a UsageError if torch is not installed, before anything starts."""
    if importlib.util.find_spec("torch") is None:
        raise missing("torch")


def missing(package: str) -> UsageError:
    """The error for a missing package of the extra `grade`."""
    return UsageError("grading", f"needs {package}, which is not installed", "pip install 'kernelmark[grade]'")


class Gpu(NamedTuple):
    """A GPU that this process may use, as the driver describes it."""

    name: str
    uuid: str
    """The identifier for `CUDA_VISIBLE_DEVICES`."""
    pci_address: str


def visible_gpus() -> list[Gpu]:
    """The GPUs that `CUDA_VISIBLE_DEVICES` allows this process to use.

    Raises:
        UsageError: this process was forked from one that has used CUDA.
    """
    try:
        driver, count = ctypes.CDLL("libcuda.so.1"), ctypes.c_int()
    except OSError:
        return []
    status = driver.cuInit(0)
    if status == _NOT_INITIALIZED:
        raise UsageError("CUDA", "cannot be used in a process forked from one that has used it", "use `spawn`")
    if status or driver.cuDeviceGetCount(ctypes.byref(count)):
        return []
    gpus = []
    for index in range(count.value):
        device, raw = ctypes.c_int(), (ctypes.c_ubyte * 16)()
        name, address = ctypes.create_string_buffer(256), ctypes.create_string_buffer(32)
        failed = driver.cuDeviceGet(ctypes.byref(device), index) or driver.cuDeviceGetUuid(raw, device)
        failed = failed or driver.cuDeviceGetName(name, len(name), device)
        if not failed and not driver.cuDeviceGetPCIBusId(address, len(address), device):
            identity = f"GPU-{uuid.UUID(bytes=bytes(raw))}"
            gpus.append(Gpu(name.value.decode(errors="replace"), identity, address.value.decode().lower()))
    return gpus


def cuda_is_here() -> bool:
    """The value of `torch.cuda.is_available()`, without the two seconds for importing torch.

    It queries the driver for devices, and looks for the files of a CUDA build of torch.
    """
    torch = importlib.util.find_spec("torch")
    if torch is None or torch.origin is None or not (Path(torch.origin).parent / "lib" / "libtorch_cuda.so").exists():
        return False
    return bool(visible_gpus())


def device_name(kind: DeviceKind) -> str | None:
    """The name that a verdict has for this machine's device of this kind; None if there is none. Imports no torch."""
    if kind == "cpu":
        return cpu_name()
    return visible_gpus()[0].name if cuda_is_here() else None


def choose_provider(settings: Settings) -> Provider:
    """The sandbox for submissions.

    Raises:
        UsageError: the folder of private cases is readable inside it.
        SandboxError: it cannot be used here.
    """
    provider, private = sandboxes.choose(settings.sandbox, providers(settings)), private_folder(settings)
    if private is not None and provider.shows(private):
        what = f"{private} can be read inside the sandbox {provider.name}"
        raise UsageError("private_cases", what, "move it" if isolates(provider.name) else "use docker or bwrap")
    return provider


def providers(settings: Settings) -> list[Provider]:
    """Every sandbox provider with this project's settings, strongest first, whether or not it can be used here."""
    return sandboxes.providers(sandboxes.Options(settings.image, settings.docker_binds, settings.docker_python))
