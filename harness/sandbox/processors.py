"""Runs sandboxes on processors of their own, separate from the judge's. Trusted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from harness.kinds import SandboxName
from harness.sandbox.protocol import Launch, Provider, Role, Sandbox


@dataclass(frozen=True)
class OnProcessors:
    """Wraps a provider, so that its sandboxes use certain processors, by their role."""

    provider: Provider
    cpus: Mapping[Role, tuple[int, ...]]

    @property
    def name(self) -> SandboxName:
        return self.provider.name

    def unavailable(self) -> str | None:
        return self.provider.unavailable()

    def launch(self, launch: Launch) -> Sandbox:
        return self.provider.launch(replace(launch, cpus=self.cpus[launch.role]))

    def image_digest(self) -> str | None:
        return self.provider.image_digest()

    def shows(self, path: Path) -> bool:
        return self.provider.shows(path)
