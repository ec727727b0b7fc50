"""The kinds that verdicts, settings and commands name alike. Standard library only, so that all may import it."""

from typing import Literal

DeviceKind = Literal["cpu", "cuda"]
SandboxName = Literal["docker", "bwrap", "process"]
Effort = Literal["quick", "default", "thorough"]
Timing = Literal["sealed", "replayed"]


def isolates(sandbox: SandboxName) -> bool:
    """Whether a submission can reach nothing but its sandbox."""
    return sandbox != "process"
