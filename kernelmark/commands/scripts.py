"""The console scripts: they run the commands of `kernelmark.commands.cli`, then exit without interpreter shutdown.

The shutdown of torch and the CUDA driver takes 0.4 s and is not needed: by then the sandboxes are closed and the ledger
is on disk.
"""

from __future__ import annotations

import contextlib
import os
import sys
from typing import NoReturn

import click

from kernelmark.commands import cli


def submit() -> NoReturn:
    """The script `submit`."""
    _run(cli.submit)


def main() -> NoReturn:
    """The script `kernelmark`."""
    _run(cli.main)


def _run(command: click.Command) -> NoReturn:
    try:
        command.main()
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else 0
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError):  # the reader is gone
            stream.flush()
    os._exit(status)
