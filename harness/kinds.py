"""The names that verdicts, settings and commands share. Standard library only, so that all may import it."""

from typing import Literal

DeviceKind = Literal["cpu", "cuda"]
SandboxName = Literal["docker", "bwrap", "process"]
Effort = Literal["screen", "quick", "default", "thorough"]
Timing = Literal["sealed", "replayed"]


def isolates(sandbox: SandboxName) -> bool:
    """Whether a submission is confined to its sandbox."""
    return sandbox != "process"
