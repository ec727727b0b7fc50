"""Entry point inside the sandbox: connects to the judge, opens the device, and executes commands until the end.

Called as `python -I -B -u PATH SOCKET`.
"""

from __future__ import annotations

import os
import platform
import select
import socket
import sys
from pathlib import Path


def main(address: str) -> None:
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    from harness.wire import frame, protocol, replies

    judge = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    judge.connect(address)
    frame.send(judge, 0, replies.Hello(protocol=protocol.PROTOCOL, python=platform.python_version()))
    from harness.launcher.serve import LauncherServer

    if os.environ.pop("KERNELMARK_AHEAD", None) is not None:  # wait for the job before creating a context
        select.select([judge], [], [])
    server = LauncherServer(judge)
    token, _, [output] = frame.receive_command(judge)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.close(output)
    server.run(token)


if __name__ == "__main__":
    main(sys.argv[1])
