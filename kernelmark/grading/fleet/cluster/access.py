"""Where a fleet is, and who may use it: its address, and its token. Does not import ray.

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
from importlib.util import find_spec
from pathlib import Path

from harness.errors import HarnessError, UsageError

_HOST_PORT = re.compile(r"([^\s:/]+|\[[0-9A-Fa-f:.]+\]):\d{1,5}")
_MODE, _TOKEN, _TOKEN_PATH = "RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"
_DEFAULT_FILE = "~/.ray/auth_token"
_CONNECT_S, _PROBE_S = 5.0, 60.0
_PROBE = "import sys; from ray._raylet import GcsClient; GcsClient(address=sys.argv[1])"


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
        content = Path(where).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        what = "is neither HOST:PORT nor an address file"
        raise UsageError(where, what, "`kernelmark fleet start` writes one") from None
    if not _HOST_PORT.fullmatch(content):
        raise UsageError(where, "does not hold HOST:PORT", "`kernelmark fleet start` writes such a file")
    return content


def require_ray() -> None:
    """Check that ray is installed, without importing it.

    Raises:
        UsageError: it is not.
    """
    if find_spec("ray") is None:
        raise UsageError("fleet", "several machines need ray", "pip install 'kernelmark[fleet]'")


def require_token() -> None:
    """Let Ray show the token in this process. Called before ray is imported, which reads the variable once.

    Raises:
        UsageError: ray is not installed, tokens are switched off, or there is none.
    """
    mode = os.environ.get(_MODE)
    if mode and mode.lower() != "token":
        raise UsageError(_MODE, f"is {mode!r}, and a fleet needs Ray's tokens", "set it to token, or unset it")
    if not mode and "ray" in sys.modules:
        raise UsageError(_MODE, "was not set when ray was imported", f"set {_MODE}=token for this program")
    require_ray()
    if not has_token():
        remedy = f"copy {_DEFAULT_FILE} from the machine of `kernelmark fleet start`, or set {_TOKEN_PATH}"
        raise UsageError("fleet", "this machine does not have the fleet's token", remedy)
    os.environ[_MODE] = "token"


def has_token() -> bool:
    """Whether Ray would find a token here."""
    try:
        return bool(os.environ.get(_TOKEN) or _file().read_text(encoding="utf-8").strip())
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
        file.touch(0o600)
        file.chmod(0o600)  # it was there, but empty
        file.write_text(secrets.token_hex(32), encoding="utf-8")
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
        raise UsageError(address, what, f"copy {_DEFAULT_FILE} from the machine of `kernelmark fleet start`")
    without = {name: value for name, value in os.environ.items() if name not in (_TOKEN, _TOKEN_PATH)}
    if _answers(address, {**without, _MODE: "disabled"}):
        remedy = f"start it with `kernelmark fleet start`, or {_MODE}=token"
        raise UsageError(address, "this Ray answers without a token", remedy)


def _answers(address: str, environment: Mapping[str, str]) -> bool:
    """Whether the Ray there answers a process with this environment; a new one, as ray reads mode and token once.

    Raises:
        HarnessError: what is there is no Ray.
    """
    command = [sys.executable, "-c", _PROBE, address]
    try:
        probe = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=_PROBE_S, check=False)
    except subprocess.TimeoutExpired:
        why = f"it took longer than {_PROBE_S:.0f} s"
    else:
        if probe.returncode == 0 or "AuthenticationError" in probe.stderr:
            return probe.returncode == 0
        why = (probe.stderr.strip().splitlines() or [f"status {probe.returncode}"])[-1]
    raise HarnessError(f"what listens at {address} does not answer as Ray does ({why})")


def _file() -> Path:
    return Path(os.environ.get(_TOKEN_PATH) or _DEFAULT_FILE).expanduser()
