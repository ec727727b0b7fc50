"""Processes that begin with torch imported: forked from one that has imported it, as children of this process.

The import is most of what a small grading takes, more than a second of processor time, and the tests start thousands of
runners and commands. What runs is the same program, in a session of its own, with its own environment and folder. It
differs from one that is started only by what was imported before, and by what `/proc` has of its beginning.

`tests/conftest.py` puts `ForkedProcess` in the place of the sandbox `process` for all that the process of the tests
grades itself, and `tests.command` forks commands. Those start their runners, as the other sandboxes do.
"""

from __future__ import annotations

import ctypes
import functools
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from typing_extensions import override

from harness.sandbox import Launch
from harness.sandbox.process import Process, ProcessSandbox
from tests import nursery

RUNNER = ("torch",)  # not Triton: a runner completes its interpreter when it is imported
_READ = ("LANG", "TRITON_INTERPRET", "PYTORCH_")
"""What the variables of a runner begin with that an import reads: neither our own, nor folders, nor its threads."""
_PR_SET_CHILD_SUBREAPER = 36
_forking = threading.Lock()


class ForkedProcess(Process):
    """The sandbox `process`, whose runners and importers are forked, but for a GPU or a watcher."""

    def launch(self, launch: Launch) -> ProcessSandbox:
        if launch.device != "cpu" or launch.watcher or launch.program or launch.role == "launcher":
            return super().launch(launch)
        return _ForkedSandbox(launch)


class _ForkedSandbox(ProcessSandbox):
    @staticmethod
    @override
    def _start(command: list[str], path: str, home: Path, output: int) -> _Forked:  # type: ignore[override]
        words = command[2 : command.index(sys.executable)]  # between `env -i` and the interpreter
        variables = dict(word.split("=", 1) for word in words)
        shared = {name: value for name, value in variables.items() if name.startswith(_READ)}
        with Path(os.devnull).open("rb") as nothing:
            streams = (nothing.fileno(), output, output)
            return _Forked(forked(("-I", "-B", "-u"), RUNNER, shared, command[-2:], variables, home, streams))


class _Forked:
    """What a sandbox uses of a `Popen`: a child of this process, though another has forked it."""

    def __init__(self, pid: int) -> None:
        self.pid = pid

    def wait(self) -> None:
        os.waitpid(self.pid, 0)


def forked(
    options: Sequence[str],
    modules: Sequence[str],
    shared: Mapping[str, str],
    arguments: Sequence[str],
    variables: Mapping[str, str],
    folder: Path,
    streams: Sequence[int],
) -> int:
    """Fork a process; returns its id. It is a child of this one.

    Args:
        options: of the interpreter.
        modules: what it begins with, imported with the variables `shared`.
        arguments: its program, or `kernelmark`, and what that is given.
        streams: its stdin, stdout and stderr.
    """
    asked = json.dumps({"arguments": [*arguments], "variables": {**variables}, "folder": str(folder)}).encode()
    assert len(asked) < nursery.MOST_BYTES
    with _forking:
        parent = _parent(os.getpid(), tuple(options), tuple(modules), tuple(sorted(shared.items())))
        _adopt(True)
        try:
            socket.send_fds(parent, [asked], [*streams])
            return int(parent.recv(nursery.MOST_BYTES))
        finally:
            _adopt(False)


@functools.cache
def _parent(
    _: int, options: tuple[str, ...], modules: tuple[str, ...], shared: tuple[tuple[str, str], ...]
) -> socket.socket:
    """The socket of a process to fork from; it ends when this process does, which is one of the arguments."""
    ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with its:
        # Threads do not survive a fork, so neither NumPy nor torch may start one.
        environment = {**dict(shared), "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        subprocess.Popen(
            [sys.executable, *options, nursery.__file__, str(its.fileno()), *modules],
            env=environment,
            pass_fds=[its.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )
    return ours


def _adopt(whether: bool) -> None:
    """Set whether orphans among its descendants become children of this process.

    No longer than a fork takes: nobody here would wait for other orphans.
    """
    assert ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, int(whether), 0, 0, 0) == 0
