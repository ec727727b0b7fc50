"""Where a fleet is, and who may use it: its address, and its token. ray is imported to probe another Ray alone.

Anyone who has the token can run programs on all machines of the fleet, and no one else may. Ray checks it on every
connection if it runs with RAY_AUTH_MODE=token. A Ray without it answers everybody, even those who show a token, so
`refuse_if_open` tries a connection without one.
"""

from __future__ import annotations

import os
import re
import secrets
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from harness.errors import HarnessError, UsageError

FILE_NAME = "fleet.address"
_HOST_PORT = re.compile(r"(?P<host>[^\s:/]+|\[[0-9A-Fa-f:.]+\]):(?P<port>\d{1,5})")
_MODE, _TOKEN, _TOKEN_PATH = "RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"
_CONNECT_S, _PROBE_S = 5.0, 60.0


def find_address(where: str) -> str:
    """HOST:PORT of a fleet's first machine, given as that or as a file that holds it.

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
        what = "is neither HOST:PORT nor an address file"
        raise UsageError(where, what, "`kernelmark fleet start` writes one") from None
    if not _HOST_PORT.fullmatch(held):
        raise UsageError(where, "does not hold HOST:PORT", "`kernelmark fleet start` writes such a file")
    return held


def require_token() -> None:
    """Let Ray show the token in this process. Called before ray is imported, which reads the variable once.

    Raises:
        UsageError: tokens are switched off, or there is none.
    """
    mode = os.environ.get(_MODE)
    if mode and mode.lower() != "token":
        raise UsageError(_MODE, f"is {mode!r}, and a fleet needs Ray's tokens", "set it to token, or unset it")
    if not mode and "ray" in sys.modules:
        raise UsageError(_MODE, "was not set when ray was imported", f"set {_MODE}=token for this program")
    if not has_token():
        remedy = f"copy {_default_file()} from the machine of `kernelmark fleet start`, or set {_TOKEN_PATH}"
        raise UsageError("fleet", "this machine does not have the fleet's token", remedy)
    os.environ[_MODE] = "token"


def has_token() -> bool:
    """Whether Ray would find a token here."""
    if os.environ.get(_TOKEN):
        return True
    try:
        return bool(_file().read_text(encoding="utf-8").strip())
    except (OSError, UnicodeDecodeError):
        return False


def make_token() -> Path:
    """Write a new token where Ray looks for it, readable by this user only; returns the file.

    Raises:
        HarnessError: it cannot be written.
    """
    file = _file()
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as opened:
            os.fchmod(opened.fileno(), 0o600)
            opened.write(secrets.token_hex(32))
    except OSError as error:
        raise HarnessError(f"the fleet's token cannot be written to {file} ({error.strerror})") from error
    return file


def refuse_if_open(address: str) -> None:
    """Check that a Ray answers there, that it takes our token, and that it answers no one without one.

    Raises:
        HarnessError: there is none.
        UsageError: it does not take our token, or answers anybody.
    """
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), _CONNECT_S).close()
    except OSError as error:
        what = f"there is no fleet at {address} ({error.strerror or error})"
        raise HarnessError(what, "is it running, and does a firewall let this machine through?") from error
    if not _answers(address, os.environ):
        what = "is the address of a fleet that does not take this machine's token"
        raise UsageError(address, what, f"copy {_default_file()} from the machine of `kernelmark fleet start`")
    without = {name: value for name, value in os.environ.items() if name not in (_TOKEN, _TOKEN_PATH)}
    if _answers(address, {**without, _MODE: "disabled"}):
        remedy = f"start it with `kernelmark fleet start`, or {_MODE}=token"
        raise UsageError(address, "this Ray answers without a token", remedy)


def _answers(address: str, environment: Mapping[str, str]) -> bool:
    """Whether the Ray there answers a process with this environment; a new one, as ray reads mode and token once.

    Raises:
        HarnessError: what is there is no Ray.
    """
    try:
        probe = subprocess.run(
            [sys.executable, "-m", __name__, address],
            env=environment, capture_output=True, encoding="utf-8", timeout=_PROBE_S, check=False,
        )  # fmt: skip
        last = (probe.stderr.strip().splitlines() or [f"status {probe.returncode}"])[-1]
    except subprocess.TimeoutExpired:
        last = f"it took longer than {_PROBE_S:.0f} s"
    else:
        if probe.returncode == 0:
            return probe.stdout.strip() == "answered"
    raise HarnessError(f"what listens at {address} does not answer as Ray does ({last})")


def _probe(address: str) -> str:
    """Ask a Ray for its cluster's id: `refused` if it wants another token than this process has, or any."""
    from ray import _raylet
    from ray.exceptions import AuthenticationError

    try:
        _raylet.GcsClient(address=address)  # type: ignore[attr-defined]  # as `ray health-check` does
    except AuthenticationError:
        return "refused"
    return "answered"


def _default_file() -> Path:
    return Path.home() / ".ray" / "auth_token"


def _file() -> Path:
    given = os.environ.get(_TOKEN_PATH)
    return Path(given).expanduser() if given else _default_file()


if __name__ == "__main__":
    print(_probe(sys.argv[1]))
