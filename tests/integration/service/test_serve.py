"""`kernelmark serve` as its user starts it: refused, ended, killed, started again, and grading on its own machine."""

from __future__ import annotations

import http.client
import os
import re
import select
import signal
import socket
import subprocess
import threading
import time
from base64 import b64encode
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import requests

from harness.errors import UsageError
from kernelmark.client.connection import Connection
from kernelmark.server.process import listening
from kernelmark.service.accounts import InvitationAcceptance, SignedIn
from kernelmark.service.submissions import QueueStatus, SubmissionRequest, SubmissionStatus
from tests.command import KERNELMARK, environment, kernelmark
from tests.integration.service.site import wait_for
from tests.leftovers import nothing_left
from tests.service_fixtures import make_project

KERNEL = "def twice(x, out):\n    out.copy_(x + x)\n"
POOL = "NVIDIA H100"
NO_WORKER = f'[server]\npools = ["{POOL}"]\n'
_END_S = 120


class Server:
    """A running server: what it printed, and its address."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process, self.said = process, list[str]()
        assert process.stderr is not None
        for line in process.stderr:
            self.said.append(line)
            if found := re.search(r" at (http://[0-9.:]+) ", line):
                self.url = found[1]
                break
        else:
            raise AssertionError(f"it did not serve: {self.said}")
        self._reads = threading.Thread(target=lambda: self.said.extend(process.stderr or ()), daemon=True)
        self._reads.start()
        while not self._answers():
            time.sleep(0.05)

    def _answers(self) -> bool:
        try:
            return requests.get(f"{self.url}/health/ready", timeout=_END_S).status_code == 200
        except requests.ConnectionError:
            assert self.process.poll() is None, self.said
            return False

    def link(self) -> str | None:
        """The link for the first organizer, if it printed one."""
        found = re.search(r"login '(\S+)'", "".join(self.said))
        return found and found[1]

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        status = self.process.wait(_END_S)
        self._reads.join()
        return status


@contextmanager
def serving(folder: Path, *options: str, files: int | None = None, **variables: str) -> Iterator[Server]:
    command = [*KERNELMARK, "serve", "--listen", "127.0.0.1:0", *options]
    if files is not None:  # that it may have open
        command = ["prlimit", f"--nofile={files}:{files}", *command]
    variables = {**environment(), **variables}
    with subprocess.Popen(command, cwd=folder, env=variables, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield Server(process)
        finally:
            process.kill()


def signed_in(server: Server) -> str:
    """The token of the first organizer, grace."""
    link = server.link()
    assert link is not None
    accepted = InvitationAcceptance(secret=link.partition("#")[2], name="grace")
    with Connection(server.url, None) as nobody:
        return nobody.post("invitations/accept", accepted, SignedIn).token


def submit(connection: Connection, key: str, **fields: object) -> SubmissionStatus:
    given = {"problem": "twice", "language": "py", "pool": POOL, "source": "eCA9IDEK", **fields}
    request = SubmissionRequest.model_validate(given)
    return connection.post("submissions", request, SubmissionStatus, headers={"Idempotency-Key": key}, repeatable=True)


def has_read(connection: http.client.HTTPConnection) -> bool:
    """Whether the server, on this machine, has read all that this connection has sent."""
    ours = [f"{port:04X}" for _, port in (connection.sock.getpeername(), connection.sock.getsockname())]
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        _, local, remote, _, queued, _, _, _, _, inode, *_ = line.split()
        if [local.rpartition(":")[2], remote.rpartition(":")[2]] == ours:
            return inode != "0" and int(queued.rpartition(":")[2], 16) == 0
    return False


def test_a_project_is_served_once_and_ends_when_it_is_told_to(tmp_path: Path) -> None:
    project = make_project(tmp_path / "project", NO_WORKER)
    with serving(project.root, "--no-grading") as server:
        second = kernelmark(project.root, "serve", "--no-grading", "--listen", urlsplit(server.url).netloc)
        by = f"is served already, by process {server.process.pid} at {server.url}"
        assert (second.returncode, by in second.stderr) == (2, True), second.stderr
        token = signed_in(server)
        run = submit(Connection(server.url, token), "first").run
        with closing(http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=_END_S)) as follow:
            path = f"/api/v1/submissions/{run}?after=1000000&wait_s=25"
            follow.request("GET", path, headers={"Authorization": f"Bearer {token}"})
            wait_for(lambda: has_read(follow), _END_S)
            in_log = project.root / ".kernelmark/server/log.jsonl"
            assert server.end() == 0
            answer = SubmissionStatus.model_validate_json(follow.getresponse().read())
        assert answer.state == "queued", "who waited was answered"
        assert "kmt_" not in in_log.read_text()
        assert "kmi_" not in in_log.read_text()


def test_who_submits_past_a_running_server_is_told_so(tmp_path: Path) -> None:
    project = make_project(tmp_path / "project", NO_WORKER)
    (tmp_path / "kernel.py").write_text(KERNEL)
    here = {"KERNELMARK_SANDBOX": "process", "KERNELMARK_DEVICE": "cpu"}
    sent = ("submit", "twice", str(tmp_path / "kernel.py"))
    with serving(project.root, "--no-grading") as server:
        hint = f"a server serves this project at {server.url}: to submit there, add --to {server.url}\n"
        told = kernelmark(project.root, *sent, **here)
        assert (told.returncode, told.stderr.count(hint)) == (0, 1), told.stderr
        assert "a server" not in kernelmark(project.root, *sent, "--here", **here).stderr
        assert "a server" not in kernelmark(project.root, *sent, "--no-record", **here).stderr
        server.end(signal.SIGKILL)
    assert "a server" not in kernelmark(project.root, *sent, **here).stderr


def test_what_was_accepted_is_there_after_a_kill(tmp_path: Path) -> None:
    project = make_project(tmp_path / "project", NO_WORKER)
    with serving(project.root, "--no-grading") as server:
        token = signed_in(server)
        accepted = submit(Connection(server.url, token), "first")
        server.end(signal.SIGKILL)
    with serving(project.root, "--no-grading") as again:
        assert again.link() is None, "there is an organizer"
        later = Connection(again.url, token)
        assert later.get(f"submissions/{accepted.run}", SubmissionStatus).state == "queued"
        assert submit(later, "first").run == accepted.run
        assert again.end() == 0


def test_many_connections_leave_the_server_its_files(tmp_path: Path) -> None:
    """Those that are one too many are ended, and the others are answered as soon as there are fewer."""
    project = make_project(tmp_path / "project", NO_WORKER)
    with serving(project.root, "--no-grading", files=256) as server, ExitStack() as opened:
        address = urlsplit(server.url)
        asked = f"GET /health/live HTTP/1.1\r\nHost: {address.netloc}\r\n\r\n"
        sockets = [
            opened.enter_context(socket.create_connection((address.hostname, address.port), _END_S)) for _ in range(300)
        ]
        for one in sockets:
            with suppress(ConnectionError):
                one.sendall(asked.encode())
        answers = list[bytes]()
        for one in sockets:
            try:
                answers.append(one.recv(12))
            except ConnectionError:
                answers.append(b"")
        # How many are answered while the others are still connected depends on the machine: maybe none is.
        assert set(answers) <= {b"HTTP/1.1 200", b"HTTP/1.1 503", b""}
        opened.close()
        until = time.monotonic() + _END_S
        while (status := requests.get(f"{server.url}/health/ready", timeout=_END_S).status_code) != 200:
            assert (status, time.monotonic() < until) == (503, True)
            time.sleep(0.1)
        assert server.end() == 0
    assert "Traceback" not in "".join(server.said)
    assert len(server.said) < 20, server.said


@pytest.mark.bwrap
def test_a_kernel_is_graded_on_the_server_s_machine_and_is_on_the_board(tmp_path: Path) -> None:
    project = make_project(tmp_path / "project", "[server]\nstaff_ranks = true\n")
    (tmp_path / "kernel.py").write_text(KERNEL)
    home = {"XDG_CONFIG_HOME": str(tmp_path / "config")}
    with serving(project.root, KERNELMARK_SANDBOX="bwrap", KERNELMARK_DEVICE="cpu") as server:
        link = server.link()
        assert link is not None
        assert kernelmark(tmp_path, "login", link, "--name", "grace", **home).returncode == 0
        sent = ("submit", "twice", str(tmp_path / "kernel.py"), "--to", server.url)
        done = kernelmark(tmp_path, *sent, **home)  # it waits for the worker, which is starting
        assert done.returncode == 0, done.stderr
        assert "accepted" in done.stdout
        children = subprocess.run(
            ["ps", "-o", "pid=", "--ppid", str(server.process.pid)], capture_output=True, text=True, check=True
        )
        worker = os.pidfd_open(int(children.stdout.split()[0]))
        server.end(signal.SIGKILL)
        assert select.select([worker], [], [], _END_S)[0], "the worker ends with its pipe"
        os.close(worker)
    board = kernelmark(project.root, "board", "twice")
    assert "grace" in board.stdout
    assert "twice.jsonl" in kernelmark(project.root, "verify").stdout


@pytest.mark.parametrize(
    "sandbox", [pytest.param("bwrap", marks=pytest.mark.bwrap), pytest.param("docker", marks=pytest.mark.docker)]
)
def test_a_server_whose_terminal_is_closed_ends_with_all_that_it_grades(tmp_path: Path, sandbox: str) -> None:
    project = make_project(tmp_path / "project")
    endless = b64encode(b"while True: pass\n").decode()
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)  # `nohup` may have started the tests
    try:
        with nothing_left(), serving(project.root, KERNELMARK_SANDBOX=sandbox, KERNELMARK_DEVICE="cpu") as server:
            connection = Connection(server.url, signed_in(server))
            wait_for(lambda: any(pool.workers for pool in connection.get("queue", QueueStatus).pools), _END_S)
            run = submit(connection, "endless", source=endless, pool=None).run
            wait_for(lambda: connection.get(f"submissions/{run}", SubmissionStatus).progress is not None, _END_S)
            assert server.end(signal.SIGHUP) == 0
            assert server.said[-1] == "ending: what was graded is recorded first\n"
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize(
    ("address", "proxy", "url", "why"),
    [
        ("0.0.0.0:8080", None, None, "can be reached from other machines"),
        ("10.0.0.5:8080", None, "https://bench.example.org", "can be reached from other machines"),
        ("[::]:8080", None, None, "can be reached from other machines"),
        ("10.0.0.5:8080", "10.0.0.1", None, "needs the address at which the proxy is reached"),
        ("10.0.0.5:8080", "proxy", "https://bench.example.org", "is not an IP address"),
        ("bench.example.org:80", None, None, "is not IP:PORT"),
        ("127.0.0.1", None, None, "is not IP:PORT"),
        ("127.0.0.1:70000", None, None, "has the port 70000"),
    ],
)
def test_others_reach_a_server_only_through_a_proxy(address: str, proxy: str | None, url: str | None, why: str) -> None:
    with pytest.raises(UsageError, match=re.escape(why)):
        listening(address, proxy, url)


def test_this_machine_and_a_proxy_may_reach_it() -> None:
    assert listening("127.0.0.1:0", None, None).address == "127.0.0.1:0"
    assert listening("[::1]:80", None, None).address == "[::1]:80"
    assert listening("localhost:80", None, None).address == "127.0.0.1:80"
    assert listening("0.0.0.0:80", "10.0.0.1", "https://bench.example.org").address == "127.0.0.1:80"
    assert listening("10.0.0.5:80", "10.0.0.1", "https://bench.example.org").proxy == "10.0.0.1"
