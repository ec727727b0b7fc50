"""Checks that the Python packages that a grading needs are installed and fit together.

torch is imported in a separate process, so that a broken installation is a diagnostic, not a crash.
"""

from __future__ import annotations

import importlib.metadata
import json
import platform
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

from harness.errors import DeviceError
from harness.shared.cupti import Cupti
from harness.verdict import SCHEMA_VERSION
from harness.wire.protocol import PROTOCOL
from kernelmark import __version__
from kernelmark.diagnostics.doctor.diagnostic import Diagnostic

_CUDA_BUILD = "pip install --force-reinstall torch --index-url https://download.pytorch.org/whl/cu130"
PROBE_S = 120.0

_PROBE = """
import importlib, importlib.util, json, pathlib
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
    found["bytecode"] = pathlib.Path(importlib.util.cache_from_source(torch.__file__)).exists()
    try:
        found["devices"] = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    except Exception as error:
        found["devices"], found["device_error"] = [], f"{type(error).__name__}: {error}"
    if found["devices"] and "version" in found["cuda.bindings.driver"]:
        from cuda.bindings import driver
        attribute = driver.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS
        driver.cuInit(0)
        found["reaches_host"] = any(driver.cuDeviceGetAttribute(attribute, i)[1] for i in range(len(found["devices"])))
print(json.dumps(found))
"""


def kernelmark() -> Diagnostic:
    """The versions of this package, of the way of measuring, and of the verdicts that it writes."""
    text = f"{__version__}, protocol {PROTOCOL}, schema {SCHEMA_VERSION}"
    return Diagnostic("ok", "kernelmark", text, part_of="packages")


def python() -> Diagnostic:
    """The interpreter's version."""
    return Diagnostic("ok", "python", platform.python_version(), part_of="packages")


def probe_torch() -> dict[str, Any]:
    """A new process's report on torch, triton, cuda-bindings and the CUDA devices; with `failure` if it failed."""
    try:
        answer = subprocess.run(
            [sys.executable, "-P", "-c", _PROBE], capture_output=True, text=True, timeout=PROBE_S, check=False
        )
        reported: dict[str, Any] = json.loads(answer.stdout.splitlines()[-1])
    except subprocess.TimeoutExpired:
        return {"failure": f"importing torch took longer than {PROBE_S:.0f} s"}
    except (IndexError, json.JSONDecodeError):
        last = answer.stderr.strip().splitlines()[-1:] or [f"exit status {answer.returncode}"]
        return {"failure": f"importing torch ended the process: {last[0]}"}
    return reported


def torch_and_triton(probe: dict[str, Any]) -> Iterator[Diagnostic]:
    """Whether both are installed, in the pair that torch was built with, and with bytecode."""
    torch = probe.get("torch", {"error": probe.get("failure", "not asked")})
    if "error" in torch:
        yield Diagnostic("fail", "torch", torch["error"], "pip install 'kernelmark[grade]'", blocks=True)
        return
    build = f"CUDA {probe['cuda']}" if probe["cuda"] else "CPU build"
    yield Diagnostic("ok", "torch", f"{torch['version']} ({build})")
    yield _triton(probe["triton"])
    if not probe.get("bytecode", True):
        what = "torch has none: every sandbox that uses this installation compiles it again, which takes seconds"
        yield Diagnostic("warn", "bytecode", what, "`python -m compileall -q` on its site-packages")


def _triton(probe: dict[str, str]) -> Diagnostic:
    if "error" in probe:
        return Diagnostic("warn", "triton", probe["error"], "install triton to grade Triton kernels")
    pin, version = pinned_triton(_requirements("torch")), probe["version"].partition("+")[0]
    if pin not in (None, version):
        return Diagnostic("warn", "triton", f"{version}, but this torch was built with {pin}", f"install triton=={pin}")
    text = f"{version}, " + ("as torch pins it" if pin else "this torch build pins none")
    return Diagnostic("ok", "triton", text, part_of="packages")


def pinned_triton(requirements: list[str]) -> str | None:
    """The triton version that torch's own metadata requires: `triton==3.6.0; platform_system == "Linux"`."""
    pins = (re.match(r"triton\s*\(?==\s*([0-9][0-9a-zA-Z.]*)", requirement) for requirement in requirements)
    return next((match[1] for match in pins if match), None)


def cuda(probe: dict[str, Any]) -> Iterator[Diagnostic]:
    """Whether a device is visible, and whether the judge can share its memory with a runner."""
    devices = probe.get("devices", [])
    if not devices:
        yield _without_cuda(probe)
        return
    yield Diagnostic("ok", "CUDA device", ", ".join(devices))
    bindings = probe["cuda.bindings.driver"]
    if "error" in bindings:
        yield Diagnostic("fail", "cuda-bindings", bindings["error"], "pip install 'kernelmark[cuda]' to grade on CUDA")
    else:
        yield Diagnostic("ok", "cuda-bindings", "importable", part_of="packages")
    if probe.get("reaches_host"):
        what = "kernels can reach all memory of their process (HMM or ATS), so a submission's can reach its launcher's"
        yield Diagnostic("warn", "host memory", what, "load nvidia-uvm with `uvm_disable_hmm=1`, where it is HMM")


def _without_cuda(probe: dict[str, Any]) -> Diagnostic:
    """Why torch finds no CUDA device, and the command that shows or repairs it."""
    if probe.get("cuda"):
        why = probe.get("device_error") or "torch sees no CUDA device"
        remedy = "`nvidia-smi` shows whether the driver does"
    else:
        why, remedy = "this torch build has no CUDA", f"with an NVIDIA GPU: `{_CUDA_BUILD}`"
    return Diagnostic("warn", "CUDA device", why, f"{remedy}; without a GPU, Triton runs in its interpreter, untimed")


def cupti() -> Diagnostic:
    """Whether CUPTI, which times replayed calls, is here; the Docker image has its own."""
    try:
        Cupti()
    except DeviceError as error:
        what = f"{error.what}: calls are not replayed, and plain calls are timed, without a rank"
        return Diagnostic("warn", "CUPTI", what, error.remedy)
    return Diagnostic("ok", "CUPTI", "found: calls can be replayed", part_of="packages")


def _requirements(distribution: str) -> list[str]:
    try:
        return importlib.metadata.requires(distribution) or []
    except importlib.metadata.PackageNotFoundError:
        return []
