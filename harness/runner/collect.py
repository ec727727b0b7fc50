"""Starts the runner under a tool that watches it, and afterwards offers the tool's output to the judge. Untrusted.

Called as `python -I -B -u collect.py SOCKET TOOL COMMAND...`, where TOOL is a `harness.sandbox.Watcher` as JSON. A
profiler writes its report after the watched process has ended, to files that only the sandbox sees. So this process
waits for both to end, connects to the judge as the runner did before, and serves the report.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

_LAST_WORDS = 2_000  # bytes of the tool's output that the judge shows if the runner never started
_KEPT = 8 << 20  # bytes of a program's output, at most


def main(address: str, tool_json: str, command: Sequence[str]) -> None:
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    from harness.wire import frame, replies

    tool = json.loads(tool_json)
    documents = {"tool output": _printed([*tool["command"], *command])}
    sys.stdout.buffer.write(documents["tool output"][-_LAST_WORDS:])
    sys.stdout.flush()
    report = Path(tool["report"])
    if report.is_file():
        documents["tool report"] = report.read_bytes()
        for name, view in tool["views"].items():
            documents[name] = _printed(view)
    judge = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    judge.connect(address)
    offers = (replies.Artefact(name=name, file_bytes=len(content)) for name, content in documents.items())
    frame.send(judge, 0, replies.Profiled(artefacts=tuple(offers)))
    while True:
        try:
            token, command_, [descriptor] = frame.receive_command(judge)
        except frame.Closed:
            return
        with os.fdopen(descriptor, "wb") as file:
            file.write(documents[command_.name])
        frame.send(judge, token, replies.Done())


def _printed(command: Sequence[str]) -> bytes:
    """The stdout and stderr of a program. They go through a file, so that the file system limits their size."""
    path = Path.home() / "printed.txt"
    with path.open("w+b") as file:
        try:
            subprocess.run(command, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT, check=False)
        except OSError as error:
            return f"{command[0]}: {error.strerror}\n".encode()
        file.seek(0)
        return file.read(_KEPT)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
