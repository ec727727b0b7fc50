"""What a dispatcher and an actor say to each other besides requests and answers: JSON documents of our own."""

from __future__ import annotations

from importlib.metadata import version

from harness.kinds import SandboxName
from harness.wire.protocol import PROTOCOL
from kernelmark.grading.fleet.messages import DeviceWish, Message

VERSION = f"{version('kernelmark')}, protocol {PROTOCOL}"
"""The version of this machine's kernelmark; all machines of a fleet must have the same."""


class ActorSetup(Message):
    """How an actor is to grade; every restart begins with it."""

    version: str
    """`VERSION` of the dispatcher."""
    device: DeviceWish
    sandbox: SandboxName
    slots: int | None = None
    """How many jobs it works on at a time; None: by the processors of the actor's machine."""


class ActorState(Message):
    """Whether an actor's worker is up, what it has done since it started, and what it is doing."""

    machine: str
    device: str = ""
    """The name of its device."""
    slots: int = 0
    error: str = ""
    """Why it cannot be up."""
    done: int = 0
    in_flight: int = 0
    seconds: float = 0.0
    """Since its first job came."""

    @property
    def working(self) -> int:
        """Jobs that it works on."""
        return min(self.slots, self.in_flight)

    @property
    def waiting(self) -> int:
        """Jobs that wait for their turn."""
        return self.in_flight - self.working

    @property
    def a_minute(self) -> float:
        """Results a minute."""
        return 60 * self.done / self.seconds if self.seconds else 0.0
