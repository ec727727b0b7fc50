"""The command `worker`: grades for a server on the devices of this machine, or of a fleet. Trusted."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.errors import UsageError
from kernelmark.commands.boundary import INTERRUPTED
from kernelmark.commands.options import device_option, load_settings, sandbox_option

if TYPE_CHECKING:
    from kernelmark.worker.worker import ServerWorker

_TOKEN_BYTES = 1000


@click.command()
@click.option("--to", "server", metavar="URL", help="The server's address. [default: [server] url of the project]")
@click.option("--fleet", metavar="ADDRESS", help="Grade on all machines of the fleet at HOST:PORT, or of its file.")
@click.option(
    "--token-file",
    metavar="FILE",
    help="The file with the worker's token. `-`: the first line of stdin, with whose end the worker ends. "
    "[default: the variable KERNELMARK_TOKEN]",
)
@click.option("--slots", type=click.IntRange(min=1), metavar="N", help="How many to grade at a time on each device.")
@device_option("Where to grade.")
@sandbox_option("How to isolate submissions: docker or bwrap.")
def worker(
    server: str | None, fleet: str | None, token_file: str | None, slots: int | None, device: Any, sandbox: Any
) -> int:
    """Grade submissions to a server, until interrupted.

    Run it in a checkout of the project that is served, with the organizers' private cases if it has any. The server
    sends submissions only: problems, kernels to compare with, and the sandbox are this project's own. Ctrl-C returns
    the jobs that are being graded.

    It does not start with settings that are not valid: exit status 2. If they become so later, it keeps running, gives
    back what it cannot grade with them, and takes it again once they are mended.
    """
    from kernelmark.grading.fleet.judges import Judges
    from kernelmark.project.problems import refuse_without_project
    from kernelmark.worker.checkout import Checkout
    from kernelmark.worker.worker import ServerWorker

    settings = load_settings(device=device, sandbox=sandbox)
    refuse_without_project(settings)
    address = server or settings.server.url
    if address is None:
        raise UsageError("--to", "is missing, and the project names no server", "give the server's address")
    token = _token(token_file)
    checkout = Checkout(settings.root, device=device, sandbox=sandbox)
    judges = Judges(settings, fleet or "auto", slots=slots)
    started = ServerWorker(address, token, checkout, judges)
    if token_file == "-":
        threading.Thread(target=_stop_with_stdin, args=(started,), daemon=True).start()
    try:
        started.run()
    except KeyboardInterrupt:  # the usual way to end a worker; its leases are given back by now
        return INTERRUPTED
    return 0


def _token(file: str | None) -> str:
    """The worker's token; the variable is removed, so that no process that this one starts has it.

    Raises:
        UsageError: there is none.
    """
    from harness.files import outside
    from kernelmark.project.settings import TOKEN

    given = os.environ.pop(TOKEN, "")
    if file == "-":
        given = sys.stdin.readline(_TOKEN_BYTES)
    elif file is not None:
        try:
            given = outside.text(Path(file))
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", "it is not UTF-8 text")
            raise UsageError(file, f"cannot be read ({why})", "name the file with the worker's token") from error
    token = given.strip()
    if not token or not token.isascii() or not token.isprintable():
        remedy = f"give --token-file or set {TOKEN}; an organizer makes a token with `kernelmark workers add NAME`"
        raise UsageError("kernelmark worker", "has no token", remedy)
    return token


def _stop_with_stdin(worker: ServerWorker) -> None:
    while sys.stdin.buffer.read(1 << 16):
        pass
    worker.stop()
