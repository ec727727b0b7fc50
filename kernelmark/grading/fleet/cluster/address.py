"""Where a fleet is: HOST:PORT of its first machine, or a file that says so."""

from __future__ import annotations

import re
from pathlib import Path

from harness.errors import UsageError

FILE_NAME = "fleet.address"
_HOST_PORT = re.compile(r"(?P<host>[^\s:/]+|\[[0-9A-Fa-f:.]+\]):(?P<port>\d{1,5})")


def find_address(where: str) -> str:
    """HOST:PORT, given as that or as a file that holds it.

    Raises:
        UsageError: it is neither.
    """
    if where.startswith("ray://"):
        what = "is an address of Ray Client, which a fleet does not use"
        raise UsageError(where, what, "run the program on a machine of the fleet, and name the fleet by HOST:PORT")
    if _HOST_PORT.fullmatch(where):
        return where
    try:
        held = Path(where).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        raise UsageError(
            where, "is neither HOST:PORT nor an address file", "`kernelmark fleet start` writes one"
        ) from None
    if not _HOST_PORT.fullmatch(held):
        raise UsageError(where, "does not hold HOST:PORT", "`kernelmark fleet start` writes such a file")
    return held


def host_and_port(address: str) -> tuple[str, int]:
    """The two parts of HOST:PORT, for a socket."""
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)
