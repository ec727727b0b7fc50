"""The names that verdicts, settings and commands share. Uses only the standard library, so that all may import it."""

from typing import Literal

DeviceKind = Literal["cpu", "cuda"]
SandboxName = Literal["docker", "bwrap", "process"]
SandboxChoice = Literal["auto", SandboxName]
Effort = Literal["screen", "quick", "default", "thorough"]
Timing = Literal["replayed", "calls", "sealed"]  # sealed: in verdicts of version 1 only


def isolates(sandbox: SandboxName) -> bool:
    """Whether a submission is confined to its sandbox."""
    return sandbox != "process"
