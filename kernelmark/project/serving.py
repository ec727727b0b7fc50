"""The table `[server]` of `kernelmark.toml`: the server's address and its rules. Trusted."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, field_validator

from harness.kinds import SandboxName, isolates
from kernelmark.service.origin import is_loopback, origin_of


class ServerSettings(BaseModel):
    """How the project is served. Commands without the name of a server use the `url`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    url: str | None = None
    """The public address, such as https://bench.example.org; http is allowed on this machine only."""
    pools: Annotated[tuple[Annotated[str, Field(min_length=1, max_length=128)], ...], Field(max_length=64)] = ()
    """The names of the devices that grade, as in verdicts; the first is the default for submissions.

    Empty: the device of the first worker that connects.
    """
    sandboxes: tuple[SandboxName, ...] = ("docker", "bwrap")
    """The sandboxes from which a worker's verdicts are accepted."""
    checks_hidden: bool = False
    """Whether `check` and `bench` also run hidden tests."""
    staff_ranks: bool = False
    """Whether submissions of organizers and assistants rank."""

    @property
    def public(self) -> bool:
        """Whether it can be reached from other machines."""
        return self.url is not None and not is_loopback(self.url)

    @field_validator("url")
    @classmethod
    def _address(cls, value: str | None) -> str | None:
        return None if value is None else origin_of(value)

    @field_validator("sandboxes")
    @classmethod
    def _all_isolate(cls, value: tuple[SandboxName, ...]) -> tuple[SandboxName, ...]:
        if not value or not all(map(isolates, value)):
            raise ValueError("name sandboxes that isolate: docker, bwrap")
        return value
