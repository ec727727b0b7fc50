"""This machine's part of a fleet: Ray's processes, started and ended. Trusted."""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from harness.errors import HarnessError, UsageError
from kernelmark.grading.fleet.cluster.access import (
    find_address,
    has_token,
    make_token,
    refuse_if_open,
    require_ray,
    require_token,
)
from kernelmark.project.choice import cuda_is_here
from kernelmark.project.settings import DeviceChoice, Settings

_ADDRESS_FILE = "fleet.address"
CPU = "kernelmark_cpu"
"""The resource of a machine whose CPU grades."""
_NODE_NAME = "--node-name=kernelmark@"
_STARTED = "Ray runtime started."
_START_S, _END_S = 60.0, 30.0
_ENVIRONMENT = {
    "RAY_worker_niceness": "0",  # Ray's processes are nice by 15 otherwise, and so would be what they start
    "RAY_worker_oom_score_adjustment": "0",
    "RAY_memory_monitor_refresh_ms": "0",  # a submission's memory is limited by its sandbox
    "RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
}


@dataclass(frozen=True)
class RayNode:
    """Ray on this machine."""

    address: str
    """HOST:PORT of the fleet's first machine."""
    process: subprocess.Popen[bytes]
    log: Path

    def wait(self) -> None:
        """Wait until it ends; when this is interrupted, end it.

        Raises:
            HarnessError: it ended by itself.
        """
        try:
            status = self.process.wait()
        except BaseException:
            _end(self.process.pid)
            raise
        raise HarnessError(f"Ray ended with status {status}: {_last_line(self.log)}", f"see {self.log}")


def start(settings: Settings, host: str | None, port: int, device: DeviceChoice | None) -> tuple[RayNode, Path | None]:
    """Start a fleet with this machine as its first; `device` None: it does not grade.

    Returns the node, and the file of the token if a new one was made. The address is written to a file in the project.

    Raises:
        UsageError: Ray's tokens are switched off, or a fleet or another program uses the port.
        HarnessError: it did not start.
    """
    require_ray()
    made = None if has_token() else make_token()
    require_token()
    from ray.util import get_node_ip_address

    host = host or get_node_ip_address()  # type: ignore[no-untyped-call]
    address = f"{host}:{port}"
    try:
        socket.create_server(("", port)).close()
    except OSError as error:
        what = f"port {port} cannot be used ({error.strerror})"
        raise UsageError("fleet start", what, "choose another --port, or `kernelmark fleet stop` first") from error
    here = ["--head", f"--port={port}", f"--node-ip-address={host}", "--include-dashboard=false"]
    node = _launch(settings, address, [*here, *_resources(device)])
    (settings.root / _ADDRESS_FILE).write_text(f"{address}\n", encoding="utf-8")
    return node, made


def join(settings: Settings, where: str, device: DeviceChoice | None) -> RayNode:
    """Add this machine to the fleet at `where`; `device` None: it does not grade.

    Raises:
        UsageError: `where` is not an address, or that fleet's token is not here.
        HarnessError: there is no fleet, or Ray did not start.
    """
    address = find_address(where)
    require_token()
    refuse_if_open(address)
    return _launch(settings, address, [f"--address={address}", *_resources(device)])


def stop(settings: Settings) -> int:
    """End what `start` and `join` started on this machine in this project; returns how many that were."""
    found = dict(_started_here(settings.root))
    for process in found:
        _end(process)
    if any("--head" in command for command in found.values()):
        (settings.root / _ADDRESS_FILE).unlink(missing_ok=True)
    return len(found)


def _resources(device: DeviceChoice | None) -> list[str]:
    """Ray's options about this machine. It counts the GPUs itself.

    Raises:
        UsageError: there is no GPU, and one was asked for.
    """
    gpu = device in ("auto", "cuda") and cuda_is_here()
    if device == "cuda" and not gpu:
        raise UsageError("--device cuda", "there is no CUDA device here", "`kernelmark doctor` says why")
    cpu = device is not None and not gpu
    # Ray keeps an idle process for each CPU; actors need none. What is sent fits into the smallest store.
    always = ["--num-cpus=0", f"--object-store-memory={200 << 20}"]
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
    """The processes of `_launch`, of this user and this project: their ids and commands."""
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            command = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
            ours = entry.stat().st_uid == os.getuid() and (entry / "cwd").readlink() == root.resolve()
        except OSError:
            continue  # it has ended, or is another user's
        if ours and "ray.scripts.scripts" in command and any(word.startswith(_NODE_NAME) for word in command):
            yield int(entry.name), command


def _end(process: int) -> None:
    """End `ray start --block`, which ends what it started."""
    with suppress(ProcessLookupError), os.fdopen(os.pidfd_open(process), "rb", buffering=0) as own:
        for number, seconds in ((signal.SIGTERM, _END_S), (signal.SIGKILL, 1.0)):
            signal.pidfd_send_signal(own.fileno(), number)
            if select.select([own], [], [], seconds)[0]:  # it has ended
                return


def _last_line(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return lines[-1] if lines else "it wrote nothing"
