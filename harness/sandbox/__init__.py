"""Where untrusted code runs: one protocol, three providers, and the choice between them.

The judge calls `choose`, then `Provider.launch` for every grading, watches the `Sandbox` while it talks to the runner
over its socket, and closes it. A sandbox is used once. Trusted. Neither docker nor torch is imported here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from harness.errors import SandboxError
from harness.sandbox.protocol import CLOSE_S, STARTUP_LOG_BYTES, Breach, Exit, Launch, Provider, Sandbox, Watcher
from harness.verdict import SandboxName

__all__ = [
    "CLOSE_S",
    "STARTUP_LOG_BYTES",
    "Breach",
    "Choice",
    "Exit",
    "Launch",
    "Provider",
    "Sandbox",
    "Watcher",
    "choose",
    "provider",
]

Choice = Literal["auto", "docker", "bwrap", "process"]


def provider(name: SandboxName) -> Provider:
    """The provider of that name with its defaults, whether or not it can be used here."""
    match name:
        case "docker":
            from harness.sandbox.docker import Docker

            return Docker()
        case "bwrap":
            from harness.sandbox.bwrap import Bwrap

            return Bwrap()
        case "process":
            from harness.sandbox.process import Process

            return Process()


def choose(name: Choice, candidates: Sequence[Provider]) -> Provider:
    """The provider of that name, or for "auto" the first of `candidates` that can be used here.

    Raises:
        SandboxError: it cannot be used; the message holds the reason and the remedy.
    """
    reason: str | None = None
    for candidate in candidates:
        if name in ("auto", candidate.name):
            reason = candidate.unavailable()
            if reason is None:
                return candidate
    raise SandboxError(f"the {name} sandbox cannot be used: {reason}")
