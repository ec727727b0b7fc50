"""`[server]` of `kernelmark.toml`: where the project is served, and by which rules. Trusted."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, field_validator

from harness.kinds import SandboxName, isolates
from kernelmark.service.origin import is_loopback
from kernelmark.service.origin import origin_of as origin_of


class ServerSettings(BaseModel):
    """How the project is served; commands that are given no server use the `url`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    url: str | None = None
    """The public address, such as https://bench.example.org; http is for this machine only."""
    pools: Annotated[tuple[Annotated[str, Field(min_length=1, max_length=128)], ...], Field(max_length=64)] = ()
    """Names of devices that grade, as verdicts have them; the first is used if a submission names none.

    Empty: the device of the first worker that connects.
    """
    sandboxes: tuple[SandboxName, ...] = ("docker", "bwrap")
    """The sandboxes that a worker's verdicts may come from."""
    checks_hidden: bool = False
    """Whether `check` and `bench` run hidden tests, too."""
    staff_ranks: bool = False
    """Whether submissions of organizers and assistants rank."""

    @property
    def public(self) -> bool:
        """Whether it is reached from beyond this machine."""
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
