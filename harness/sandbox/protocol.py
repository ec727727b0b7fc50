"""What every sandbox promises: how it is started, watched, and ended. Neither docker nor torch is imported here."""

from __future__ import annotations

import json
import signal
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from harness.kinds import DeviceKind, SandboxName

Role = Literal["runner", "launcher", "importer"]
"""Which of our programs runs in the sandbox."""


@dataclass(frozen=True)
class Watcher:
    """A program that starts the runner and watches it, as a debugger does.

    When both have ended, `runner.collect` offers the judge what it printed as "tool output", its report as "tool
    report", and what the views of the report print.
    """

    command: tuple[str, ...]
    """Its absolute path and arguments; the runner's command line follows them."""
    directory: Path
    """The host directory that contains it, bound read-only in addition to the CUDA toolkit."""
    report: str = ""
    """The file that it writes, relative to HOME, if it writes one."""
    views: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Commands that print something of the report, by the name of the document (`wire.protocol.ARTEFACTS`)."""

    def to_json(self) -> str:
        """The watcher as an argument of the collector's command line."""
        return json.dumps({"command": self.command, "report": self.report, "views": dict(self.views)})


@dataclass(frozen=True, kw_only=True)
class Launch:
    """What one sandbox is to run, and within which limits."""

    socket: Path
    """The judge's Unix SOCK_SEQPACKET listener, outside the sandbox; mode 0666, in a private directory."""
    device: DeviceKind
    gpu_index: int = 0
    """Which GPU, counted in PCI bus order; the sandbox sees only that one, as its device 0. `process` could use any."""
    memory_bytes: int
    processes: int
    """Processes and threads together, as the kernel counts them."""
    disk_bytes: int
    """Size of each private file system: one for HOME, one for TMPDIR."""
    cpus: tuple[int, ...] = ()
    """The processors that it may use; () for those of the judge, or all. `process` ignores it."""
    environment: Mapping[str, str] = field(default_factory=dict)
    watcher: Watcher | None = None
    role: Role = "runner"
    """Which of the harness's own programs is run."""
    program: Path | None = None
    """A script to run instead of the runner, with the same arguments: for the conformance suite and the doctor."""


_SIGNALS = {
    "SIGSEGV": "it touched memory that it has no right to",
    "SIGBUS": "it touched memory that is not there",
    "SIGFPE": "an integer division by zero",
    "SIGABRT": "it aborted itself",
}


@dataclass(frozen=True)
class Exit:
    """How the runner ended: either a code or a signal."""

    code: int | None
    signal: int | None
    out_of_memory: bool = False

    @property
    def description(self) -> str:
        """How it ended, as a clause for a message."""
        if self.signal is None:
            return f"the process ended by itself (exit status {self.code})"
        known = self.signal in set(signal.Signals)
        name = signal.Signals(self.signal).name if known else f"signal {self.signal}"
        why = f" ({_SIGNALS[name]})" if name in _SIGNALS else ""
        return f"the process was ended by {name}{why}"


@dataclass(frozen=True)
class Breach:
    """A limit found exceeded by polling, where the kernel does not stop the process itself."""

    kind: Literal["memory", "processes"]
    detail: str


class Sandbox(Protocol):
    """One started runner, and everything that it starts in turn."""

    def ended(self) -> Exit | None:
        """How the runner ended, or None while it lives. Never blocks; cheap enough for every 50 ms."""

    def breach(self) -> Breach | None:
        """The limit that is exceeded right now, or None. Never blocks; cheap enough for every 50 ms."""

    def cpu_ns(self) -> int | None:
        """The CPU time that everything in it has used so far, by the kernel's account and to 10 ms; None if that is not
        visible from here. Never blocks.
        """

    def close(self) -> None:
        """Kill the whole process tree, wait until it is gone, and remove everything that the sandbox made. Idempotent.

        It takes as long as the kernel needs to end the processes, at most `CLOSE_S`. What no process uses any more may
        be removed after that by `ending.later`, which `ending.wait` waits for.

        Raises:
            SandboxError: something is left, which the message names; everything else is removed.
        """

    def startup_log(self) -> str:
        """What was printed before the runner connected, at most `STARTUP_LOG_BYTES` of it; call before `close`."""


class Provider(Protocol):
    """A way to make sandboxes on this machine."""

    @property
    def name(self) -> SandboxName:
        """Its name in verdicts."""

    def unavailable(self) -> str | None:
        """Why it cannot be used here, and the remedy, in one line; None when it can."""

    def launch(self, launch: Launch) -> Sandbox:
        """Start a sandbox; the runner then connects to `launch.socket`.

        Raises:
            SandboxError: it could not be started.
        """

    def image_digest(self) -> str | None:
        """What identifies the software inside, if the provider knows it."""

    def shows(self, path: Path) -> bool:
        """Whether a sandbox contains this host file; permissions may still keep the runner from reading it."""


STARTUP_LOG_BYTES = 64 << 10
# 170 processes that map the same 4 GiB took more than a minute to die on two busy cores. The bound is for those that
# the kernel cannot end at all, as with a hanging driver: the judge has other submissions to grade.
CLOSE_S = 600.0
