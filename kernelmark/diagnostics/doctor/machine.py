"""Checks compilers, calibration, disk space, kernel features and the CPU's clock."""

from __future__ import annotations

import fcntl
import os
import shutil
from pathlib import Path

from harness.device.cpu import cpu_name
from harness.errors import KernelmarkError
from harness.sandbox import gpu
from harness.verdict.roofline import choose
from kernelmark.diagnostics.doctor.diagnostic import Diagnostic
from kernelmark.project.calibrations import stored
from kernelmark.project.settings import Settings

MIN_FREE_BYTES, WANTED_FREE_BYTES = 512 << 20, 4 << 30
F_SEAL_FUTURE_WRITE = 0x0010  # not in the fcntl module of Python 3.11
CPUS = Path("/sys/devices/system/cpu")


def compiler(name: str, suffix: str, *, needed: bool) -> Diagnostic:
    """Whether a compiler is installed, as the bwrap and process sandboxes need it."""
    toolkit = gpu.toolkit() if name == "nvcc" else None
    path = str(toolkit / "bin" / name) if toolkit else shutil.which(name)
    if path:
        return Diagnostic("ok", name, path, part_of="machine")
    if not needed:
        text = f"not found, and not needed without a CUDA device ({suffix} files)"
        return Diagnostic("ok", name, text, part_of="machine")
    return Diagnostic("warn", name, "not found", f"install it to grade {suffix} files")


def calibration(settings: Settings, devices: list[str]) -> Diagnostic:
    """Whether the device has a calibration, which says how fast it can be at most."""
    device = devices[0] if devices else cpu_name()
    try:
        known = choose(stored(settings), device, None)
    except KernelmarkError as error:
        return Diagnostic("fail", "calibration", str(error))
    if known is None:
        return Diagnostic("warn", "calibration", f"none for {device}", "run `kernelmark calibrate` for roofline shares")
    return Diagnostic("ok", "calibration", f"{device}, {known.created_at:%Y-%m-%d}")


def free_space(directory: Path) -> Diagnostic:
    """Whether there is space for sockets, logs and scratch files."""
    free = shutil.disk_usage(directory).free
    text = f"{free / 2**30:.1f} GiB free in {directory}"
    if free < MIN_FREE_BYTES:
        return Diagnostic("fail", "temp dir", text, "free some, or point TMPDIR elsewhere", blocks=True)
    if free < WANTED_FREE_BYTES:
        remedy = f"free some: {WANTED_FREE_BYTES >> 30} GiB are enough for every problem"
        return Diagnostic("warn", "temp dir", text, remedy)
    return Diagnostic("ok", "temp dir", text, part_of="machine")


def sealing() -> Diagnostic:
    """Whether inputs on the CPU can be made read-only permanently: memfd with F_SEAL_FUTURE_WRITE."""
    try:
        descriptor = os.memfd_create("kernelmark-doctor", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        try:
            fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, F_SEAL_FUTURE_WRITE)
        finally:
            os.close(descriptor)
    except (OSError, AttributeError) as error:
        return Diagnostic("fail", "memfd seals", f"refused ({error})", "run on Linux 5.1 or later", blocks=True)
    return Diagnostic("ok", "memfd seals", "F_SEAL_FUTURE_WRITE works", part_of="machine")


def clock_frequency(cpus: Path) -> Diagnostic:
    """Whether the CPU's frequency is fixed while kernels are timed on it."""
    governor = _text(cpus / "cpu0/cpufreq/scaling_governor")
    turbo = _text(cpus / "intel_pstate/no_turbo") == "0" or _text(cpus / "cpufreq/boost") == "1"
    if governor is None and not turbo:
        return Diagnostic("ok", "CPU clock", "not readable here", part_of="machine")
    moving = [f"governor {governor}"] if governor not in (None, "performance") else []
    moving += ["turbo is on"] if turbo else []
    if not moving:
        return Diagnostic("ok", "CPU clock", "governor performance, turbo off", part_of="machine")
    remedy = "CPU times move with it: `cpupower frequency-set -g performance`, and switch turbo off"
    return Diagnostic("warn", "CPU clock", ", ".join(moving), remedy)


def _text(path: Path) -> str | None:
    try:
        return path.read_text().strip()
    except OSError:
        return None
