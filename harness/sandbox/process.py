"""The sandbox without isolation: a child process with a clean environment and private directories. Trusted.

This is the fallback on a machine with neither Docker nor bubblewrap. It limits accidents (memory, processes, a process
tree that would outlive its run), but not attacks: the submission can read and write everything that the judge's user
can. Its verdicts say so.
"""

from __future__ import annotations

import contextlib
import os
import resource
import secrets
import shutil
import signal
import subprocess
import sys
from pathlib import Path

from harness.errors import SandboxError
from harness.kinds import SandboxName
from harness.sandbox import inside
from harness.sandbox import tree as process_tree
from harness.sandbox.gpu import toolkit
from harness.sandbox.limits import over
from harness.sandbox.protocol import CLOSE_S, Breach, Exit, Launch
from harness.sandbox.startup import StartupLog

MARK = "KERNELMARK_RUN"


class Process:
    """Provider of the unisolated sandbox; usable everywhere."""

    name: SandboxName = "process"

    def unavailable(self) -> str | None:
        return None

    def image_digest(self) -> str | None:
        return None

    def shows(self, path: Path) -> bool:
        return True

    def launch(self, launch: Launch) -> ProcessSandbox:
        """Start the runner with the judge's interpreter.

        Raises:
            SandboxError: the process could not be started.
        """
        try:
            return ProcessSandbox(launch)
        except OSError as error:
            raise SandboxError(f"the runner's process could not be started ({error})") from error


class ProcessSandbox:
    """One runner as a child process in its own session."""

    def __init__(self, launch: Launch) -> None:
        self._limits = launch
        # In the session's folder, which the next judge removes if this one is killed.
        self._directory = directory = launch.socket.parent / "scratch"
        directory.mkdir()
        mark = secrets.token_hex(16)
        self._mark = f"{MARK}={mark}"
        home, tmpdir = directory / "home", directory / "tmp"
        home.mkdir()
        tmpdir.mkdir()
        cuda = toolkit()
        one_gpu = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": str(launch.gpu_index)}
        variables = inside.environment(
            launch,
            path=inside.search_path(Path(sys.executable).parent, *([cuda / "bin"] if cuda else [])),
            home=str(home),
            tmpdir=str(tmpdir),
            extra={MARK: mark, **(one_gpu if launch.device == "cuda" else {})},
        )
        runner = launch.program or inside.HARNESS / launch.role / "__main__.py"
        collect = str(inside.HARNESS / "runner" / "collect.py")
        command = inside.command(sys.executable, str(runner), str(launch.socket), variables, launch.watcher, collect)
        self._log = StartupLog()
        with self._log.writer() as output:
            self._process = self._start(command, variables["PATH"], home, output)
        with contextlib.suppress(ProcessLookupError):
            resource.prlimit(self._process.pid, resource.RLIMIT_CORE, (inside.core_bytes(),) * 2)
        self._seen = {self._process.pid}
        self._exit: Exit | None = None
        self._closed = False

    @staticmethod
    def _start(command: list[str], path: str, home: Path, output: int) -> subprocess.Popen[bytes]:
        """Start the process in a session of its own; stdout and stderr go to a descriptor."""
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=home,
            env={"PATH": path},
            start_new_session=True,
        )

    def ended(self) -> Exit | None:
        """Check without reaping, so that the process id, which is also the session's, is not reused before `close`."""
        if self._exit is None:
            seen = os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if seen is not None:
                exited = seen.si_code == os.CLD_EXITED
                self._exit = Exit(seen.si_status, None) if exited else Exit(None, seen.si_status)
        return self._exit

    def breach(self) -> Breach | None:
        """Check the process tree. A process that was seen once is followed even after its parent died."""
        self._seen = process_tree.tree(self._seen)
        return over(process_tree.usage(self._seen), self._limits)

    def cpu_ns(self) -> int:
        return process_tree.cpu_ns(process_tree.tree(self._seen))

    def close(self) -> None:
        """Kill all processes of the session, their descendants, and those with this run's mark in their environment;
        then remove the directories.

        Raises:
            SandboxError: processes or files remain.
        """
        if self._closed:
            return
        self._closed = True
        left = process_tree.kill_marked(self._mark, self._process.pid, within_s=CLOSE_S)
        if self._process.pid not in left:
            self._process.wait()
        self._exit = self._exit or Exit(None, signal.SIGKILL)
        self._log.close()
        _remove(self._directory)
        if left or self._directory.exists():
            what = f"processes {sorted(left)}" if left else str(self._directory)
            raise SandboxError(f"the sandbox left {what} behind", "end or remove it by hand")

    def startup_log(self) -> str:
        return self._log.text()


def _remove(directory: Path) -> None:
    """Remove a directory in which the submission may have revoked permissions; `close` reports what remains."""
    for parent, names, _ in os.walk(directory):
        for path in (Path(parent) / name for name in names):
            with contextlib.suppress(OSError):
                if not path.is_symlink():
                    path.chmod(0o700)
    shutil.rmtree(directory, ignore_errors=True)
