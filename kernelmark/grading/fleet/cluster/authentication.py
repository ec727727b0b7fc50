"""A fleet's token: whoever has it can run programs on all machines of the fleet, and nobody else may.

Ray checks it on every connection if it runs with RAY_AUTH_MODE=token. A Ray without it answers everybody, even those
who show a token, so `refuse_if_open` tries a connection without one.
"""

from __future__ import annotations

import os
import secrets
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from harness.errors import HarnessError, UsageError
from kernelmark.grading.fleet.cluster.address import host_and_port

_MODE, _TOKEN, _TOKEN_PATH = "RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"
_CONNECT_S, _PROBE_S = 5.0, 60.0


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
    """Check that a Ray answers there, that it takes our token, and that it answers nobody without one.

    Raises:
        HarnessError: there is none.
        UsageError: it does not take our token, or answers anybody.
    """
    try:
        socket.create_connection(host_and_port(address), _CONNECT_S).close()
    except OSError as error:
        what = f"there is no fleet at {address} ({error.strerror or error})"
        raise HarnessError(what, "is it running, and does a firewall let this machine through?") from error
    without = {name: value for name, value in os.environ.items() if name not in (_TOKEN, _TOKEN_PATH)}
    probes = [_probe(address, os.environ), _probe(address, {**without, _MODE: "disabled"})]
    ours, anybody = (_answer(probe, address) for probe in probes)
    if ours != "answered":
        what = "is the address of a fleet that does not take this machine's token"
        raise UsageError(address, what, f"copy {_default_file()} from the machine of `kernelmark fleet start`")
    if anybody != "refused":
        raise UsageError(
            address,
            "this Ray answers without a token",
            "start it with `kernelmark fleet start`, or RAY_AUTH_MODE=token",
        )


def _probe(address: str, environment: Mapping[str, str]) -> subprocess.Popen[str]:
    # A process of its own: Ray reads its mode and token once.
    command = [sys.executable, "-m", "kernelmark.grading.fleet.cluster.probe", address]
    return subprocess.Popen(
        command, env=dict(environment), stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8"
    )


def _answer(probe: subprocess.Popen[str], address: str) -> str:
    try:
        answer, errors = probe.communicate(timeout=_PROBE_S)
    except subprocess.TimeoutExpired:
        probe.kill()
        answer, errors = probe.communicate()
    if probe.returncode:
        last = (errors.strip().splitlines() or [f"status {probe.returncode}"])[-1]
        raise HarnessError(f"what listens at {address} does not answer as Ray does ({last})")
    return answer.strip()


def _default_file() -> Path:
    return Path.home() / ".ray" / "auth_token"


def _file() -> Path:
    given = os.environ.get(_TOKEN_PATH)
    return Path(given).expanduser() if given else _default_file()
