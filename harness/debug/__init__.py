"""Runs one test of a problem in this very process, for the author of a submission: prints and `breakpoint()` work.

Nothing isolates the submission here, and nothing is timed or recorded. The judge's own code makes the inputs and checks
the outputs, and the runner's own code makes the call. `kernelmark debug` starts it as a program, `python -m
harness.debug`, with a request; torch is not imported for that.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from harness.kinds import DeviceKind, SandboxName
from harness.problem.schedule import Schedule
from harness.sandbox import Options
from harness.shared.foreign import ForeignForm


class DebugRequest(BaseModel):
    """One call to make: which test, with which sizes, and with which inputs, if they are to be those of a dump."""

    model_config = ConfigDict(frozen=True)

    problem: Path
    """Its directory."""
    files: tuple[Path, ...]
    """The submission's own, then the others."""
    device: DeviceKind
    test: str
    params: dict[str, int | str]
    seed: int | None = None
    """Of the inputs; by default random."""
    sandbox: tuple[SandboxName, Options] | None = None
    """Where a foreign reference runs; ours runs in the program itself."""
    checkouts: Mapping[ForeignForm, Path] = {}
    schedule: Schedule = Schedule()
    interactive: bool = False
