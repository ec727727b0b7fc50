"""The console scripts: the commands of `kernelmark.commands.cli` in a process of their own, which ends at once.

What torch and the CUDA driver tear down when an interpreter ends takes 0.4 s, and nothing of ours waits for it: by then
the sandboxes are closed and the ledger is on disk.
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
        with contextlib.suppress(OSError):  # whoever read it has gone
            stream.flush()
    os._exit(status)
