"""The interface of all sandboxes: how one is started, watched and ended. Imports neither docker nor torch."""

from __future__ import annotations

import json
import signal
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from harness.kinds import DeviceKind, SandboxName

Role = Literal["runner", "launcher", "importer"]
"""Which of the harness's programs runs in a sandbox."""


@dataclass(frozen=True)
class Watcher:
    """A tool that starts the runner and watches it, as a debugger does.

    When both have ended, `runner.collect` offers the judge the tool's output as "tool output", its report as "tool
    report", and the output of the `views`.
    """

    command: tuple[str, ...]
    """The tool's absolute path and arguments; the runner's command line is appended."""
    directory: Path
    """The host directory that contains the tool, which is bound read-only in addition to the CUDA toolkit."""
    report: str = ""
    """The file that the tool writes, relative to HOME, if it writes one."""
    views: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Commands that print parts of the report, by the name of the document (`wire.protocol.ARTEFACTS`)."""

    def to_json(self) -> str:
        """The watcher as an argument of the collector's command line."""
        return json.dumps({"command": self.command, "report": self.report, "views": dict(self.views)})


@dataclass(frozen=True, kw_only=True)
class Launch:
    """What a sandbox runs, and its limits."""

    socket: Path
    """The judge's Unix SOCK_SEQPACKET listener, outside the sandbox; mode 0666, in a private directory."""
    device: DeviceKind
    gpu_index: int = 0
    """The GPU's index in PCI bus order. The sandbox sees only this GPU, as device 0; in `process` it could use any."""
    memory_bytes: int
    processes: int
    """Processes and threads together, as the kernel counts them."""
    disk_bytes: int
    """The size of each private file system: one for HOME, one for TMPDIR."""
    cpus: tuple[int, ...] = ()
    """The processors that it may use; (): those of the judge, or all. `process` ignores this."""
    environment: Mapping[str, str] = field(default_factory=dict)
    watcher: Watcher | None = None
    role: Role = "runner"
    program: Path | None = None
    """A script to run instead of the program, with the same arguments: for the conformance suite and the doctor."""


_SIGNALS = {
    "SIGSEGV": "it touched memory that it has no right to",
    "SIGBUS": "it touched memory that is not there",
    "SIGFPE": "an integer division by zero",
    "SIGABRT": "it aborted itself",
}


@dataclass(frozen=True)
class Exit:
    """How the runner ended: by an exit code or by a signal."""

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
    """An exceeded limit that polling found, because the kernel did not stop the process itself."""

    kind: Literal["memory", "processes"]
    detail: str


class Sandbox(Protocol):
    """A started runner, with all processes that it starts."""

    def ended(self) -> Exit | None:
        """How the runner ended, or None while it runs. Never blocks; cheap enough to call every 50 ms."""

    def breach(self) -> Breach | None:
        """The limit that is exceeded now, or None. Never blocks; cheap enough to call every 50 ms."""

    def cpu_ns(self) -> int | None:
        """The CPU time of all processes so far, as the kernel counts it, with a resolution of 10 ms; None if it is not
        visible here. Never blocks.
        """

    def close(self) -> None:
        """Kill the whole process tree, wait until it is gone, and remove everything that the sandbox made. Idempotent.

        This takes as long as the kernel needs to end the processes, at most `CLOSE_S`. Things that no process uses any
        more may be removed later, by `ending.later`; `ending.wait` waits for that.

        Raises:
            SandboxError: something remains, which the message names; everything else is removed.
        """

    def startup_log(self) -> str:
        """What was printed before the runner connected, at most `STARTUP_LOG_BYTES`; call this before `close`."""


class Provider(Protocol):
    """A kind of sandbox, which starts sandboxes on this machine."""

    @property
    def name(self) -> SandboxName:
        """The provider's name in verdicts."""

    def unavailable(self) -> str | None:
        """Why the provider cannot be used here, and the remedy, in one line; None if it can."""

    def launch(self, launch: Launch) -> Sandbox:
        """Start a sandbox; the runner then connects to `launch.socket`.

        Raises:
            SandboxError: it could not be started.
        """

    def image_digest(self) -> str | None:
        """An identifier of the software inside, if the provider knows one."""

    def shows(self, path: Path) -> bool:
        """Whether a sandbox contains this host file; permissions may still keep the runner from reading it."""


STARTUP_LOG_BYTES = 64 << 10
# 170 processes that map the same 4 GiB took more than a minute to end on two busy cores. This limit is for processes
# that the kernel cannot end at all, as with a hanging driver: the judge has other submissions to grade.
CLOSE_S = 600.0
