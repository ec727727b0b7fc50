"""This machine's part of a fleet: where the fleet is, who may use it, and Ray's processes. Trusted.

Anyone with the fleet's token can run programs on all its machines, and nobody else may. Ray checks the token of every
connection if it runs with RAY_AUTH_MODE=token; otherwise it accepts connections with any token or none, so
`refuse_if_open` tries to connect without one. Only `start` imports ray.
"""

from __future__ import annotations

import os
import re
import secrets
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from harness.errors import HarnessError, UsageError
from kernelmark.project.choice import cuda_is_here
from kernelmark.project.settings import DeviceChoice, Settings
from leaderboard.record.durable import unwritable, write_whole

_HOST_PORT = re.compile(r"([^\s:/]+|\[[0-9A-Fa-f:.]+\]):\d{1,5}")
_MODE, _TOKEN, _TOKEN_PATH = "RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"
_DEFAULT_FILE = "~/.ray/auth_token"
_CONNECT_S, _PROBE_S = 5.0, 60.0
_PROBE = "import sys; from ray._raylet import GcsClient; GcsClient(address=sys.argv[1])"


def find_address(where: str) -> str:
    """HOST:PORT of a fleet's first machine; `where` is this itself, or a file that holds it.

    Raises:
        UsageError: it is neither.
    """
    if _HOST_PORT.fullmatch(where):
        return where
    try:
        content = Path(where).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        what = "is neither HOST:PORT nor an address file"
        remedy = "give HOST:PORT, or the file that `kernelmark fleet start` wrote on the first machine"
        raise UsageError(where, what, remedy) from None
    if not _HOST_PORT.fullmatch(content):
        raise UsageError(where, "does not hold HOST:PORT", "`kernelmark fleet start` writes such a file")
    return content


def require_token() -> None:
    """Make Ray use the token in this process. Call it before ray is imported, which reads the variable once.

    Raises:
        UsageError: ray is not installed, tokens are switched off, or this machine has no token.
    """
    mode = os.environ.get(_MODE)
    if mode and mode.lower() != "token":
        raise UsageError(_MODE, f"is {mode!r}, and a fleet needs Ray's tokens", "set it to token, or unset it")
    if not mode and "ray" in sys.modules:
        raise UsageError(_MODE, "was not set when ray was imported", f"set {_MODE}=token for this program")
    if find_spec("ray") is None:
        raise UsageError("fleet", "several machines need ray", "pip install 'kernelmark[fleet]'")
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
        file.chmod(0o600)  # for an empty file that existed
        file.write_text(secrets.token_hex(32), encoding="utf-8")
    except OSError as error:
        raise HarnessError(f"the fleet's token cannot be written to {file} ({error.strerror})") from error
    return file


def refuse_if_open(address: str) -> None:
    """Check that Ray runs there, accepts our token, and refuses connections without one.

    Raises:
        HarnessError: Ray does not run there.
        UsageError: it refuses our token, or accepts connections without one.
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
    """Whether Ray there accepts a process with this environment. It is a new process, as ray reads the variables once.

    Raises:
        HarnessError: it is not Ray.
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


_ADDRESS_FILE = "fleet.address"
CPU = "kernelmark_cpu"
"""Ray's resource for a machine whose CPU grades."""
_NODE_NAME = "--node-name=kernelmark@"
_STARTED = "Ray runtime started."
_START_S, _END_S = 60.0, 30.0
_ENVIRONMENT = {
    "RAY_worker_niceness": "0",  # otherwise Ray's processes, and those that they start, have a niceness of 15
    "RAY_worker_oom_score_adjustment": "0",
    "RAY_memory_monitor_refresh_ms": "0",  # the sandbox limits a submission's memory
    "RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
}


@dataclass(frozen=True)
class RayNode:
    """The Ray process on this machine."""

    address: str
    """HOST:PORT of the fleet's first machine."""
    process: subprocess.Popen[bytes]
    log: Path

    def wait(self) -> None:
        """Wait until it ends, or end it, and remove its log, when this call is interrupted.

        Raises:
            HarnessError: it ended by itself.
        """
        try:
            status = self.process.wait()
        except BaseException:
            _end(self.process.pid)
            self.log.unlink(missing_ok=True)
            raise
        raise HarnessError(f"Ray ended with status {status}: {_last_line(self.log)}", f"see {self.log}")


def start(settings: Settings, host: str | None, port: int, device: DeviceChoice | None) -> tuple[RayNode, Path | None]:
    """Start a fleet with this machine as its first one; `device` None: this machine does not grade.

    Returns the node, and the token's file if a new token was made. Writes the address to a file in the project.

    Raises:
        UsageError: Ray's tokens are switched off, or a fleet or another program uses the port.
        HarnessError: the address cannot be written, or it did not start.
    """
    made = None if has_token() or find_spec("ray") is None else make_token()
    require_token()
    if host is None:
        from ray.util import get_node_ip_address

        host = str(get_node_ip_address())  # type: ignore[no-untyped-call]
    address = f"{host}:{port}"
    try:
        socket.create_server(("", port)).close()
    except OSError as error:
        what = f"port {port} cannot be used ({error.strerror})"
        raise UsageError("fleet start", what, "choose another --port, or `kernelmark fleet stop` first") from error
    here = ["--head", f"--port={port}", f"--node-ip-address={host}", "--include-dashboard=false"]
    file = settings.root / _ADDRESS_FILE
    if file.is_dir() or unwritable(file):
        raise HarnessError(f"{file}: the address cannot be written", "make the project's folder writable for you")
    node = _launch(settings, address, [*here, *_resources(device)])
    write_whole(file, f"{address}\n".encode(), replace=True)
    return node, made


def join(settings: Settings, where: str, device: DeviceChoice | None) -> RayNode:
    """Add this machine to the fleet at `where`; `device` None: this machine does not grade.

    Raises:
        UsageError: `where` is not an address, this machine does not have the fleet's token, or it grades there already.
        HarnessError: there is no fleet, or Ray did not start.
    """
    address = find_address(where)
    if device is not None and address in (_grades_for(command) for _, command in _started_here(settings.root)):
        what = f"this machine grades for the fleet at {address} already"
        raise UsageError("fleet join", what, "`kernelmark fleet stop` takes it out")
    require_token()
    refuse_if_open(address)
    return _launch(settings, address, [f"--address={address}", *_resources(device)])


def stop(settings: Settings) -> int:
    """End the processes that `start` and `join` started on this machine in this project; returns their number."""
    found = dict(_started_here(settings.root))
    for process in found:
        _end(process)
    if any("--head" in command for command in found.values()):
        with suppress(OSError):  # it is gone, or the folder is not writable any more
            (settings.root / _ADDRESS_FILE).unlink()
    return len(found)


def _resources(device: DeviceChoice | None) -> list[str]:
    """Ray's options for this machine; Ray counts the GPUs itself.

    Raises:
        UsageError: the device is "cuda", and there is no GPU.
    """
    gpu = device in ("auto", "cuda") and cuda_is_here()
    if device == "cuda" and not gpu:
        raise UsageError("--device cuda", "there is no CUDA device here", "`kernelmark doctor` says why")
    cpu = device is not None and not gpu
    # Ray would keep an idle process for each CPU, which actors do not need. All messages fit into the smallest store.
    # Worker ports 0 are any free ones: by default Ray keeps 10002 to 19999, and refuses a --port among them.
    always = ["--num-cpus=0", f"--object-store-memory={200 << 20}", "--min-worker-port=0", "--max-worker-port=0"]
    return [*always, *([] if gpu else ["--num-gpus=0"]), *([f'--resources={{"{CPU}": 1}}'] if cpu else [])]


def _launch(settings: Settings, address: str, options: Sequence[str]) -> RayNode:
    command = [sys.executable, "-m", "ray.scripts.scripts", "start", "--block", "--disable-usage-stats"]
    descriptor, name = tempfile.mkstemp(prefix="kernelmark-fleet-", suffix=".log")
    with os.fdopen(descriptor, "wb") as log:
        process = subprocess.Popen(
            [*command, _NODE_NAME + socket.gethostname(), *options],
            cwd=settings.root,  # the actors' directory, and so their project
            env={**os.environ, **_ENVIRONMENT},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    node = RayNode(address, process, Path(name))
    until = time.monotonic() + _START_S
    while process.poll() is None and time.monotonic() < until:
        if _STARTED in node.log.read_text(encoding="utf-8", errors="replace"):
            return node
        time.sleep(0.1)
    if process.poll() is None:
        _end(process.pid)
    raise HarnessError(f"Ray did not start: {_last_line(node.log)}", f"see {node.log}")


def _started_here(root: Path) -> Iterator[tuple[int, list[str]]]:
    """The ids and commands of the processes that `_launch` started for this user and project."""
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            command = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
            ours = entry.stat().st_uid == os.getuid() and (entry / "cwd").readlink() == root.resolve()
        except OSError:
            continue  # it has ended, or is another user's
        if ours and "ray.scripts.scripts" in command and any(word.startswith(_NODE_NAME) for word in command):
            yield int(entry.name), command


def _grades_for(command: Sequence[str]) -> str | None:
    """The address of the fleet for which a process that `_launch` started grades; None: it grades for none."""
    given = dict(word.split("=", 1) for word in command if "=" in word)
    if "--num-gpus" in given and "--resources" not in given:
        return None
    return given.get("--address") or f"{given.get('--node-ip-address')}:{given.get('--port')}"


def _end(process: int) -> None:
    """End `ray start --block`, which then ends its child processes."""
    with suppress(ProcessLookupError), os.fdopen(os.pidfd_open(process), "rb", buffering=0) as own:
        for number, seconds in ((signal.SIGTERM, _END_S), (signal.SIGKILL, 1.0)):
            signal.pidfd_send_signal(own.fileno(), number)
            if select.select([own], [], [], seconds)[0]:  # it has ended
                return


def _last_line(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return lines[-1] if lines else "it wrote nothing"
