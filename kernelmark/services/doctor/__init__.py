"""Checks what this machine needs before it can grade: one diagnostic per check, with a remedy.

`kernelmark doctor` prints the diagnostics. Trusted.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from kernelmark.services.doctor import machine, packages, project, sandboxes
from kernelmark.services.doctor.diagnostic import Diagnostic
from kernelmark.services.settings import Settings

__all__ = ["Diagnostic", "can_grade", "examine", "lines"]


def examine(settings: Settings) -> Iterator[Diagnostic]:
    """Every finding about this machine and this project, in the order in which one would put them right."""
    yield packages.kernelmark()
    yield packages.python()
    probe = packages.probe_torch()
    devices = probe.get("devices", [])
    yield from packages.torch_and_triton(probe)
    yield from packages.cuda(probe)
    if devices:
        yield packages.cupti()
    yield machine.compiler("nvcc", ".cu", needed=bool(devices))
    yield machine.compiler("g++", ".cpp", needed=True)
    yield from sandboxes.usable(settings, cuda_is_here=bool(devices))
    yield machine.calibration(settings, devices)
    yield machine.free_space(Path(tempfile.gettempdir()))
    yield machine.sealing()
    yield machine.clock_frequency(machine.CPUS)
    yield from project.problems(settings)
    yield from project.ledgers(settings)


def can_grade(findings: list[Diagnostic]) -> bool:
    """Whether a grading could run here on some device, in some sandbox."""
    return not any(f.status == "fail" and f.blocks for f in findings)


def lines(findings: list[Diagnostic]) -> Iterator[str]:
    """The diagnostics as aligned text, one per line."""
    width = max(len(f.check) for f in findings)
    for f in findings:
        yield f"{f.status:<4}  {f.check:<{width}}  {f.text}" + (f"; {f.remedy}" if f.remedy else "")
