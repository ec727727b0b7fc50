"""A program that imports modules, then forks processes which begin with them: `tests.forked` starts it.

Its arguments are the descriptor of a socket and the modules. It is asked with a JSON of the arguments, the variables
and the folder of a process, and with its stdin, stdout and stderr. It answers with its id, once that is an orphan.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import runpy
import socket
import sys
import tempfile
from pathlib import Path

MOST_BYTES = 1 << 16
NAME = "forked"
"""What `/proc/<id>/comm` says of the new processes, whose command line is still this program's."""


def born(parent: socket.socket) -> list[str]:
    """Fork whenever it is asked for. Returns in the new processes alone, each with its program and arguments."""
    while True:
        asked, streams, _, _ = socket.recv_fds(parent, MOST_BYTES, 3)
        if not asked:
            os._exit(0)  # whoever asked has ended
        told, tell = os.pipe()
        between = os.fork()
        if not between:
            if child := os.fork():
                os.write(tell, str(child).encode())
                os._exit(0)  # whoever asked adopts the child
            parent.close()
            os.close(told)
            os.close(tell)
            return _settled(json.loads(asked), streams)
        os.waitpid(between, 0)
        parent.send(os.read(told, MOST_BYTES))
        for descriptor in (told, tell, *streams):
            os.close(descriptor)


def _settled(asked: dict[str, object], streams: list[int]) -> list[str]:
    """Take the streams, the folder and the variables that were asked for."""
    os.setsid()
    Path("/proc/self/comm").write_text(NAME)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(str(asked["folder"]))
    os.environ.clear()
    os.environ.update(asked["variables"])  # type: ignore[call-overload]
    tempfile.tempdir = None
    return list(asked["arguments"])  # type: ignore[call-overload, no-any-return]


if __name__ == "__main__":
    _, socket_fd, *modules = sys.argv
    for name in modules:
        importlib.import_module(name)
    gc.freeze()
    sys.argv[:] = born(socket.socket(fileno=int(socket_fd)))
    if sys.argv[0] == "kernelmark":
        from kernelmark.commands.scripts import main

        main()
    runpy.run_path(sys.argv[0], run_name="__main__")
