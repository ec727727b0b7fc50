"""Sandboxes for untrusted code: one protocol, three providers, and the choice between them.

The judge calls `choose`, then `Provider.launch` for every grading, watches the `Sandbox` while it talks to the runner
over its socket, and closes it. A sandbox is used once. Trusted. This module imports neither docker nor torch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from harness.errors import SandboxError
from harness.kinds import SandboxChoice, SandboxName
from harness.sandbox.protocol import CLOSE_S, STARTUP_LOG_BYTES, Breach, Exit, Launch, Provider, Role, Sandbox, Watcher


@dataclass(frozen=True)
class Options:
    """A project's sandbox settings, of which each provider uses its own."""

    image: str = "kernelmark-runner:latest"
    docker_binds: tuple[Path, ...] = ()
    """Host paths that a thin image lacks (/usr, /opt), bound read-only into the container."""
    docker_python: str = "python3"
    """The Python inside the container."""


def _docker(options: Options) -> Provider:
    from harness.sandbox.docker import Docker

    return Docker(options.image, options.docker_binds, options.docker_python)


def _bwrap(_: Options) -> Provider:
    from harness.sandbox.bwrap import Bwrap

    return Bwrap()


def _process(_: Options) -> Provider:
    from harness.sandbox.process import Process

    return Process()


# Strongest first. Each module is imported when it is needed. A new provider must also be added to `SandboxName`.
_PROVIDERS: dict[SandboxName, Callable[[Options], Provider]] = {"docker": _docker, "bwrap": _bwrap, "process": _process}


def provider(name: SandboxName, options: Options | None = None) -> Provider:
    """The provider of this name, whether or not it can be used here."""
    return _PROVIDERS[name](options or Options())


def providers(options: Options) -> list[Provider]:
    """Every provider, strongest first, whether or not it can be used here."""
    return [make(options) for make in _PROVIDERS.values()]


def choose(name: SandboxChoice, candidates: Sequence[Provider]) -> Provider:
    """The provider of this name, or for "auto" the first of `candidates` that can be used here.

    Raises:
        SandboxError: it cannot be used; the message contains the reason and the remedy.
    """
    reason: str | None = None
    for candidate in candidates:
        if name in ("auto", candidate.name):
            reason = candidate.unavailable()
            if reason is None:
                return candidate
    raise SandboxError(f"the {name} sandbox cannot be used: {reason}")
