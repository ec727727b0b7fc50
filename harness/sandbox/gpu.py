"""Gives a sandbox access to a GPU and the CUDA toolkit. Called by the providers; trusted.

For Docker there are three ways, tried in this order: the NVIDIA container toolkit, a CDI specification, and the bare
device nodes with read-only binds of the driver's libraries. bubblewrap uses only the last.
"""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal

from harness.errors import SandboxError

Way = Literal["toolkit", "cdi", "nodes"]
_SHARED_NODES = ("nvidiactl", "nvidia-uvm", "nvidia-uvm-tools")
_MULTIARCH = ("/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu")
_LIBRARY_DIRECTORIES = (
    "/usr/local/nvidia/lib64",
    "/usr/local/nvidia/lib",
    *_MULTIARCH,
    "/usr/lib64",
    "/usr/lib/wsl/lib",
)
_DRIVER_LIBRARY = re.compile(r"lib(cuda|cudadebugger|nvidia-[a-z0-9-]+|nvcuvid|nvoptix)\.so(\.[0-9.]+)?")
_CDI_DIRECTORIES = ("/etc/cdi", "/var/run/cdi")
_DRIVER_LISTING = Path("/proc/driver/nvidia/gpus")


def toolkit() -> Path | None:
    """The host's CUDA toolkit, a directory that contains `bin/nvcc`, or None.

    It never contains more than the toolkit (a distribution's nvcc is in /usr), since all of it is bound.
    """
    candidates = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda"]
    if nvcc := shutil.which("nvcc"):
        candidates.append(str(Path(nvcc).resolve().parent.parent))
    for candidate in filter(None, candidates):
        directory = Path(candidate).resolve()
        if (directory / "bin" / "nvcc").is_file() and directory not in (Path("/"), Path("/usr"), Path("/usr/local")):
            return directory
    return None


def way_for_docker(info: Mapping[str, Any]) -> Way:
    """Which of the three ways this daemon offers, from its `docker info`."""
    if "nvidia" in (info.get("Runtimes") or {}) or shutil.which("nvidia-container-runtime-hook"):
        return "toolkit"
    if info.get("CDISpecDirs") and any(_is_nvidia_spec(path) for at in _CDI_DIRECTORIES for path in Path(at).glob("*")):
        return "cdi"
    return "nodes"


def index_in_use() -> int:
    """The index of CUDA device 0 of this process in PCI bus order; `CUDA_VISIBLE_DEVICES` may choose any GPU.

    Raises:
        SandboxError: there are several GPUs, and the driver does not report which one it is.
    """
    address, cards = address_in_use(), [address for address, _ in _cards()]
    if address in cards:
        return cards.index(address)
    if len(cards or _nodes()) > 1:
        raise SandboxError(
            "cannot tell which of this machine's GPUs is in use: the driver lists none at its PCI address",
            "leave one GPU to this container or virtual machine, or use the device cpu",
        )
    return 0


def device_nodes(gpu_index: int) -> list[Path]:
    """The device nodes of one GPU, by its index in PCI bus order, and the nodes that all GPUs share.

    Raises:
        SandboxError: there is no such GPU.
    """
    node = Path(f"/dev/nvidia{_minor(gpu_index)}")
    if not node.exists():
        raise SandboxError(f"GPU {gpu_index} has no device node {node}", "check `nvidia-smi -L`")
    return [node, *(path for name in _SHARED_NODES if (path := Path("/dev") / name).exists())]


@cache
def driver_libraries() -> tuple[Path, ...]:
    """The driver's user-space libraries (`libcuda.so.1`, `libnvidia-*.so.*`) that this host's loader finds.

    They are cached: four sandboxes of a grading need them, and the driver does not change while a process runs.

    Raises:
        SandboxError: there is no `libcuda`.
    """
    libraries: dict[Path, None] = {}
    for path in [*_known_to_the_loader(), *(p for at in _LIBRARY_DIRECTORIES for p in Path(at).glob("lib*.so*"))]:
        if _DRIVER_LIBRARY.fullmatch(path.name):
            libraries[path.parent.resolve() / path.name] = None
    if not any(path.name.startswith("libcuda.so") for path in libraries):
        raise SandboxError(
            "the NVIDIA driver's libcuda is not installed here", "install the driver, or use the device cpu"
        )
    return tuple(libraries)


def library_path(libraries: Iterable[Path], *, host_system: bool) -> str:
    """The LD_LIBRARY_PATH for libraries that the sandbox's loader does not find by itself.

    `host_system`: whether the sandbox has the host's /usr. Then directories that the loader searches anyway must not be
    listed: they would come before the directories of torch's own libraries, and hide the CUDA libraries there.
    """
    known = {*_MULTIARCH, *(("/usr/lib", "/usr/lib64") if host_system else ())}
    return os.pathsep.join(dict.fromkeys(at for path in libraries if (at := str(path.parent)) not in known))


def _known_to_the_loader() -> list[Path]:
    ldconfig = shutil.which("ldconfig") or "/sbin/ldconfig"
    try:
        listing = subprocess.run([ldconfig, "-p"], capture_output=True, text=True, check=True, timeout=10).stdout
    except (OSError, subprocess.SubprocessError):
        return []
    return [Path(line.rpartition(" => ")[2]) for line in listing.splitlines() if " => /" in line and "64" in line]


def _minor(gpu_index: int) -> int:
    """The N in /dev/nvidiaN, which may differ from the index; the driver reports it for each PCI address."""
    minors = [minor for _, minor in _cards()] or _nodes()
    if gpu_index >= len(minors):
        raise SandboxError(
            f"there is no GPU {gpu_index}: {len(minors)} found", "check `nvidia-smi -L`, or use the device cpu"
        )
    return minors[gpu_index]


def _cards() -> list[tuple[str, int]]:
    """The PCI address and minor number of every GPU, in PCI bus order; empty if the driver does not list them."""
    listed = sorted(_DRIVER_LISTING.glob("*/information"), key=lambda path: path.parent.name)
    return [
        (card.parent.name.lower(), int(minor[1]))
        for card in listed
        if (minor := re.search(r"Device Minor:\s*(\d+)", card.read_text()))
    ]


def _nodes() -> list[int]:
    return sorted(int(m[1]) for node in Path("/dev").glob("nvidia*") if (m := re.fullmatch(r"nvidia(\d+)", node.name)))


def address_in_use() -> str:
    """The PCI address of CUDA device 0 in this process, or "" if the driver does not report it."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return ""
    device, address = ctypes.c_int(), ctypes.create_string_buffer(32)
    if driver.cuInit(0) or driver.cuDeviceGet(ctypes.byref(device), 0):
        return ""
    return "" if driver.cuDeviceGetPCIBusId(address, len(address), device) else address.value.decode().lower()


def _is_nvidia_spec(path: Path) -> bool:
    try:
        return path.suffix in (".yaml", ".yml", ".json") and "nvidia.com/gpu" in path.read_text(encoding="utf-8")
    except OSError:
        return False
