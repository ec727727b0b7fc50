"""Checks whether a resident worker waits for the next command, and ends it on request."""

from __future__ import annotations

from kernelmark.diagnostics.doctor.diagnostic import Diagnostic
from kernelmark.grading.resident import place
from kernelmark.grading.resident.command import off
from kernelmark.project.choice import cuda_is_here
from kernelmark.project.settings import Settings


def waits(settings: Settings) -> Diagnostic:
    """Whether a resident worker waits in this project."""
    on_gpu = settings.device != "cpu" and cuda_is_here()
    if why := off(settings, "cuda" if on_gpu else "cpu"):
        return Diagnostic("ok", "resident", f"off, because {why}")
    where = place.socket_of(settings.root)
    if where is None:
        what = "none can wait: others have rights on this account's folder kernelmark-resident-* for temporary files"
        return Diagnostic("warn", "resident", what, "remove it")
    if (pid := place.waiting(where)) is None:
        what = "no worker waits; `submit`, `check` and `bench` leave one in docker, and in bwrap as root"
        return Diagnostic("ok", "resident", what)
    what = f"process {pid} waits for the next `submit`, `check` or `bench` here"
    how = "it ends after five idle minutes, when code, settings or problems change, and by `doctor --end-resident`"
    return Diagnostic("ok", "resident", f"{what}; {how}")


def end_resident(settings: Settings) -> str:
    """End the resident worker of this project, with its sandboxes; returns a line about it."""
    where = place.socket_of(settings.root)
    pid = place.waiting(where, end=True) if where is not None else None
    return "no resident worker waits here" if pid is None else f"the resident worker, process {pid}, has ended"
