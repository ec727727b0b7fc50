"""A temporary project that is served by a process of its own, which can be killed and started again.

The load generator and the tests that kill use it. Accounts, tokens and workers are made as an organizer makes them:
with the link that `serve` prints, and over the API.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from base64 import b64encode
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks.service.connection import Connection, Gone, Refused
from benchmarks.service.fake_worker import POOL
from kernelmark.diagnostics.selftest import PROBLEMS
from leaderboard.record.ledger import JsonlLedger

ROOT = Path(__file__).resolve().parent.parent.parent
SLUG = "double"
_SCRIPT = "from kernelmark.commands.scripts import main; main()"
_LINK = re.compile(r"#(kmi_[A-Za-z0-9_-]+)")
GRADING = (
    "KERNELMARK_SANDBOX", "KERNELMARK_IMAGE", "KERNELMARK_DOCKER_BINDS", "KERNELMARK_DOCKER_PYTHON",
    "KERNELMARK_GPU_MODE_CHECKOUT", "KERNELMARK_KERNELBENCH_CHECKOUT",
)  # fmt: skip
COMMAND_S = 1200.0
"""A command that takes so long has failed; `submit` waits for its turn and its grading."""
START_S = 60.0
"""After so long a server that does not answer is a failure, not a slow one."""


class Server:
    """`kernelmark serve` on a project in a folder; `start` it first, and `close` it at the end.

    Args:
        grading: whether it grades on this machine, with the KERNELMARK_* settings of this process.
    """

    def __init__(self, root: Path, *, grading: bool = False) -> None:
        # Bound for as long as this is there, so that no other program is given the port while the server is down.
        self._reserved = socket.socket()
        self._reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._reserved.bind(("127.0.0.1", 0))
        self.root, self.port = root, int(self._reserved.getsockname()[1])
        self._options = [] if grading else ["--no-grading"]
        self._settings = {name: value for name, value in os.environ.items() if grading and name in GRADING}
        self.url = f"http://127.0.0.1:{self.port}"
        self.organizer = ""
        """The token of the first organizer, once there is one."""
        self.said: list[str] = []
        """What the process has printed, line by line; of all its starts."""
        self._process: subprocess.Popen[str] | None = None
        if not (root / "kernelmark.toml").exists():
            shutil.copytree(PROBLEMS / SLUG, root / "problems" / SLUG)
            pools = f'[server]\npools = ["{POOL}"]\nurl = "{self.url}"\n'
            (root / "kernelmark.toml").write_text(f'baselines = ["none"]\ndevice = "cpu"\n\n{pools}')

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self, until: str = "/health/ready") -> float:
        """Start it, and wait until this page says that all is well.

        Returns:
            For how many seconds it did not.

        Raises:
            RuntimeError: it ended, or is not ready after a minute; with what it printed.
        """
        began = time.monotonic()
        self._process = subprocess.Popen(
            [sys.executable, "-c", _SCRIPT, "serve", *self._options, "--listen", f"127.0.0.1:{self.port}"],
            cwd=self.root, env=environment() | self._settings, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        threading.Thread(target=self._listen, args=(self._process,), daemon=True).start()
        while True:
            try:
                Connection(self.url).ask("GET", until)
            except (Gone, Refused) as error:
                if self._process.poll() is not None or time.monotonic() - began > START_S:
                    said = "\n".join(self.said[-40:])
                    raise RuntimeError(f"the server is not ready ({error}):\n{said}") from None
                time.sleep(0.02)
            else:
                return time.monotonic() - began

    def begin(self) -> None:
        """Start it for the first time, and become its first organizer."""
        self.start()
        until = time.monotonic() + START_S
        while not (links := [found[1] for line in self.said if (found := _LINK.search(line))]):
            if time.monotonic() > until:
                raise RuntimeError("the server has printed no link")
            time.sleep(0.02)
        self.organizer = self._accept(links[-1], "teacher")

    def kill(self) -> None:
        """End it as a power cut would."""
        self._end(signal.SIGKILL)

    def close(self) -> None:
        """End it as an operator would."""
        self._end(signal.SIGTERM)

    def _end(self, number: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait(timeout=60)
            self._process = None

    def _listen(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            self.said.append(line.rstrip("\n"))

    def connection(self, token: str = "") -> Connection:
        """A new connection; with the organizer's token, unless another is given."""
        return Connection(self.url, token or self.organizer)

    def people(self, names: list[str]) -> list[str]:
        """Make an account for each name, by invitations; returns their tokens."""
        return [self._accept(self.invitation().rpartition("#")[2], name) for name in names]

    def invitation(self) -> str:
        """The link of a new invitation."""
        [made] = self.connection().post("invitations", {"count": 1})["items"]
        return str(made["link"])

    def _accept(self, secret: str, name: str) -> str:
        accepted = Connection(self.url).post("invitations/accept", {"secret": secret, "name": name})
        return str(accepted["token"])

    def worker_token(self, name: str) -> str:
        """A new token for a worker of that name."""
        return str(self.connection().post(f"workers/{name}")["token"])

    def rss_mib(self) -> float:
        """The memory that the process has resident, in MiB."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1]) / 1024

    def cpu_s(self) -> float:
        """The processor's time that the process has used."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    @property
    def ledger(self) -> JsonlLedger:
        return JsonlLedger(self.root / "leaderboard" / "results" / f"{SLUG}.jsonl")

    def recorded(self) -> Counter[str]:
        """How often each run is in the ledgers of the project."""
        ledgers = map(JsonlLedger, (self.root / "leaderboard" / "results").glob("*.jsonl"))
        return Counter(entry.verdict.run for book in ledgers for entry in book.read() if entry.kind == "verdict")

    def verify(self) -> str:
        """What `kernelmark verify` finds wrong; empty if nothing is."""
        ended = self.command("verify")
        return "" if ended.returncode == 0 else ended.stdout + ended.stderr

    def command(self, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
        """Run a command of kernelmark in the project; `more` is added to its environment."""
        return subprocess.run(
            [sys.executable, "-c", _SCRIPT, *words],
            cwd=self.root, env={**environment(), **more}, timeout=COMMAND_S,
            capture_output=True, text=True, check=False,
        )  # fmt: skip


def environment() -> dict[str, str]:
    """This process's environment without settings of kernelmark, and with this checkout to import from."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("KERNELMARK_")}
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    return {**kept, "PYTHONPATH": path, "PYTHONUNBUFFERED": "1"}


def submission(source: str, **more: Any) -> bytes:
    """The document of a submission to the project's problem; `more` are its other fields."""
    document = {"problem": SLUG, "language": "py", "source": b64encode(source.encode()).decode(), **more}
    return json.dumps(document).encode()
