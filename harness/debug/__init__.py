"""Runs one test of a problem in this process, for the author of a submission, so that `print` and `breakpoint()` work.

The submission is not isolated here, and nothing is timed or recorded. The judge's code makes the inputs and checks the
outputs, and the runner's code makes the call. `kernelmark debug` starts it as a program, `python -m harness.debug`,
with a request; this module imports no torch.
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
    """One call to make: the test, its sizes, and the seed of its inputs."""

    model_config = ConfigDict(frozen=True)

    problem: Path
    """The problem's directory."""
    files: tuple[Path, ...]
    """The submission's own file, then its extra files."""
    device: DeviceKind
    test: str
    params: dict[str, int | str]
    seed: int | None = None
    """The seed of the inputs, such as that of a dump; by default random."""
    sandbox: tuple[SandboxName, Options] | None = None
    """Where a foreign reference runs; other references run in this process."""
    checkouts: Mapping[ForeignForm, Path] = {}
    schedule: Schedule = Schedule()
    interactive: bool = False
