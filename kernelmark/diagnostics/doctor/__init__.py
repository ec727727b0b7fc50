"""Checks what this machine needs before it can grade: one diagnostic per check, with a remedy.

`kernelmark doctor` prints the diagnostics. Trusted.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from kernelmark.diagnostics.doctor import machine, packages, project, resident, sandboxes
from kernelmark.diagnostics.doctor.diagnostic import Diagnostic
from kernelmark.diagnostics.doctor.resident import end_resident
from kernelmark.project.settings import Settings
from kernelmark.text.terminal import Line, counted

__all__ = ["Diagnostic", "can_grade", "end_resident", "examine", "lines"]
_STYLES = {"ok": "green", "warn": "yellow", "fail": "red"}
_NAMED = 6  # parts of one thing that are named, not counted


def examine(settings: Settings) -> Iterator[Diagnostic]:
    """Every finding about this machine and this project, in the order in which they should be fixed."""
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
    yield resident.waits(settings)
    yield machine.calibration(settings, devices)
    yield machine.free_space(Path(tempfile.gettempdir()))
    yield machine.sealing()
    yield machine.clock_frequency(machine.CPUS)
    yield from project.problems(settings)
    yield from project.ledgers(settings)


def can_grade(findings: list[Diagnostic]) -> bool:
    """Whether a grading could run here on some device, in some sandbox."""
    return not any(f.status == "fail" and f.blocks for f in findings)


def lines(findings: list[Diagnostic], *, everything: bool = False) -> Iterator[str]:
    """Whether this machine can grade, then the diagnostics as aligned text, one per line. Unless `everything` is true,
    the parts of a group that have no fault share a line.
    """
    yield Line(_summary(findings), "bold")
    shown = findings if everything else list(_gathered(findings))
    width = max((len(f.check) for f in shown), default=0)
    for f in shown:
        text = f"{f.status:<4}  {f.check:<{width}}  {f.text}" + (f"; {f.remedy}" if f.remedy else "")
        yield Line(text, _STYLES[f.status], styled=len(f.status), hang=width + 8)


def _summary(findings: list[Diagnostic]) -> str:
    count: Counter[str] = Counter(f.status for f in findings)
    wrong = [counted(count[s], name) for s, name in (("fail", "failure"), ("warn", "warning")) if count[s]]
    can = "this machine can grade" if can_grade(findings) else "this machine cannot grade yet"
    if any(f.text.startswith(project.NO_PROJECT) for f in findings):
        can += f", but {project.NO_PROJECT}"
    return f"{can} ({' and '.join(wrong)} below)" if wrong else f"{can}, and nothing is missing"


def _gathered(findings: list[Diagnostic]) -> Iterator[Diagnostic]:
    """The findings; those of one group without a fault become one, in the place of the first."""
    parts: dict[str, list[str]] = {}
    for f in findings:
        if f.status == "ok" and f.part_of:
            parts.setdefault(f.part_of, []).append(f.check.removeprefix(f.part_of.removesuffix("s") + " "))
    for f in findings:
        if f.status != "ok" or not f.part_of:
            yield f
        elif checks := parts.pop(f.part_of, None):
            yield Diagnostic("ok", f.part_of, ", ".join(checks) if len(checks) <= _NAMED else f"all {len(checks)}")
