"""The command line in a process of its own, as a user starts it, whatever the environment of the tests."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.forked import forked

KERNELMARK = (sys.executable, "-P", "-c", "from kernelmark.commands.scripts import main; main()")
_MODULES = ("harness.judge.grading", "kernelmark.commands.cli")
_READ = ("LANG", "LC_", "PYTHON")  # what an import reads
_NOT_INHERITED = ("KERNELMARK_", "GIT_", "RAY_")


def environment() -> dict[str, str]:
    """Without settings; the packages are those of this interpreter, and so of this checkout."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_NOT_INHERITED)}
    return {**kept, "KERNELMARK_RESIDENT": "false", "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}


def python(folder: Path, *line: str, status: int = 0, **more: str) -> subprocess.CompletedProcess[str]:
    """Run Python in that folder to its end, which must be this status; `more` are variables of its environment."""
    done = subprocess.run(
        [sys.executable, *line],
        cwd=folder, env=environment() | more, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == status, done.stdout + done.stderr
    return done


def kernelmark(
    folder: Path, *arguments: str, typed: str = "", timeout_s: float = 600, **more: str
) -> subprocess.CompletedProcess[str]:
    """Run `kernelmark` in that folder to its end; `more` are variables of its environment.

    In a forked process, which has everything imported; `KERNELMARK` starts one.
    """
    variables = environment() | more
    shared = {name: value for name, value in environment().items() if name.startswith(_READ)}
    with (
        tempfile.TemporaryFile("w+") as given,
        tempfile.TemporaryFile("w+") as out,
        tempfile.TemporaryFile("w+") as err,
    ):
        given.write(typed)
        given.seek(0)
        streams = (given.fileno(), out.fileno(), err.fileno())
        pid = forked(("-P",), _MODULES, shared, ("kernelmark", *arguments), variables, folder, streams)
        ended = os.pidfd_open(pid)
        try:
            if not select.select([ended], [], [], timeout_s)[0]:
                raise subprocess.TimeoutExpired(arguments, timeout_s)
        finally:
            signal.pidfd_send_signal(ended, signal.SIGKILL)
            _, status = os.waitpid(pid, 0)
            os.close(ended)
        for stream in (out, err):
            stream.seek(0)
        return subprocess.CompletedProcess(arguments, os.waitstatus_to_exitcode(status), out.read(), err.read())
