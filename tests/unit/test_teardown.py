"""The end of a sandbox: what cannot be removed is named, and everything else is still released."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import docker
import pytest
import requests

from harness.errors import SandboxError
from harness.sandbox import Launch, bwrap, cgroup, ending, process, tree, uids
from harness.sandbox import docker as containers
from harness.sandbox.docker import Container
from tests.open_files import open_files

SLEEP = "import time; time.sleep(1e6)"


class Daemon:
    """Answers each request to remove a container with the next of `answers`, and the last for ever."""

    def __init__(self, *answers: Exception | None) -> None:
        self._answers, self.asked = list(answers), 0

    def remove_container(self, container: str, **_: object) -> None:
        self.asked += 1
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if answer is not None:
            raise answer


def refusal(status: int, text: str) -> Any:
    response = requests.Response()
    response.status_code = status
    return docker.errors.APIError(text, response, text)


SLOW = refusal(500, "tried to kill container, but did not receive an exit event")
BUSY = refusal(409, "removal of container is already in progress")
GONE = docker.errors.NotFound("no such container")
LATE = requests.ReadTimeout("read timed out")
ABSENT = requests.ConnectionError("connection refused")


@pytest.fixture
def first_process() -> Iterator[subprocess.Popen[bytes]]:
    """What stands for the first process of a container."""
    with subprocess.Popen([sys.executable, "-c", SLEEP]) as running:
        yield running
        running.kill()


def container(daemon: Any, first_process: subprocess.Popen[bytes]) -> tuple[Container, int]:
    made = Container(daemon, "c0ffee", uids.HIGH[0], 1 << 30)
    made._pid, made._pidfd = first_process.pid, os.pidfd_open(first_process.pid)
    return made, made._pidfd


def may_not_kill(*_: object) -> None:
    raise PermissionError


@pytest.mark.parametrize(
    ("answers", "asked"),
    [((None,), 1), ((SLOW, SLOW, None), 3), ((LATE, BUSY, BUSY, GONE), 4), ((ABSENT, ABSENT, GONE), 3)],
    ids=["at once", "a slow kill", "no answer in time", "a daemon that starts again"],
)
@pytest.mark.parametrize("may_kill", [True, False])
def test_a_container_is_removed_as_soon_as_the_daemon_can(
    answers: tuple[Exception | None, ...],
    asked: int,
    may_kill: bool,
    first_process: subprocess.Popen[bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(containers, "_AGAIN_S", 0.01)
    if not may_kill:
        monkeypatch.setattr(signal, "pidfd_send_signal", may_not_kill)
    daemon = Daemon(*answers)
    made, pidfd = container(daemon, first_process)
    made.close()
    made.close()
    if may_kill:
        assert first_process.wait(10) == -signal.SIGKILL
        ending.wait()
    assert daemon.asked == asked
    assert not Path(f"/proc/self/fd/{pidfd}").exists()


def test_a_busy_daemon_is_not_waited_for_once_the_processes_have_ended(first_process: subprocess.Popen[bytes]) -> None:
    class Busy(Daemon):
        def remove_container(self, container: str, **_: object) -> None:
            assert answers.wait(60)
            super().remove_container(container)

    answers, daemon = threading.Event(), Busy(None)
    made, _ = container(daemon, first_process)
    made.close()
    assert (first_process.wait(10), daemon.asked) == (-signal.SIGKILL, 0)
    answers.set()
    ending.wait()
    assert daemon.asked == 1


@pytest.mark.parametrize(
    ("answer", "bound", "message"),
    [(SLOW, "CLOSE_S", "did not receive an exit event"), (ABSENT, "DAEMON_S", "start dockerd")],
    ids=["a kill without an end", "no daemon any more"],
)
def test_a_container_that_stays_is_an_error_in_the_end(
    answer: Exception,
    bound: str,
    message: str,
    first_process: subprocess.Popen[bytes],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Which is a warning if all processes are gone."""
    monkeypatch.setattr(containers, "_AGAIN_S", 0.01)
    monkeypatch.setattr(containers, bound, 0.1)
    started = time.monotonic()
    with monkeypatch.context() as patch:
        patch.setattr(signal, "pidfd_send_signal", may_not_kill)
        made, pidfd = container(Daemon(answer), first_process)
        with pytest.raises(SandboxError, match=message):
            made.close()
        assert not Path(f"/proc/self/fd/{pidfd}").exists()
    container(Daemon(answer), first_process)[0].close()
    ending.wait()
    [record] = caplog.records
    assert record.getMessage().startswith("kernelmark: warning: a sandbox could not be removed (")
    assert message in record.getMessage()
    assert time.monotonic() - started < 25


def test_a_stuck_container_is_named(first_process: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    daemon = Daemon(None)
    made, pidfd = container(daemon, first_process)
    with monkeypatch.context() as patch:
        patch.setattr(containers, "CLOSE_S", 0.1)
        patch.setattr(signal, "pidfd_send_signal", lambda *_: None)
        with pytest.raises(SandboxError, match=f"first process {first_process.pid} cannot be killed"):
            made.close()
    assert (daemon.asked, Path(f"/proc/self/fd/{pidfd}").exists()) == (0, False)


def launch(directory: Path) -> Launch:
    script = directory / "script.py"
    script.write_text(SLEEP)
    (directory / "socket").touch()
    limits: dict[str, Any] = {"memory_bytes": 1 << 29, "processes": 64, "disk_bytes": 8 << 20}
    return Launch(socket=directory / "socket", device="cpu", program=script, **limits)


@pytest.mark.bwrap
def test_a_stuck_bubblewrap_is_named_and_leaks_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tmp_path.chmod(0o755)
    before = open_files().total()
    sandbox = bwrap.Bwrap().launch(launch(tmp_path))
    with monkeypatch.context() as patch:
        patch.setattr(bwrap, "CLOSE_S", 0.1)
        patch.setattr(signal, "pidfd_send_signal", lambda *_: None)
        with pytest.raises(SandboxError, match=f"first process {sandbox._init_pid} cannot be killed"):
            sandbox.close()
    sandbox.close()
    assert open_files().total() <= before
    os.kill(sandbox._init_pid, signal.SIGKILL)
    sandbox._process.wait(10)
    assert sandbox._group is None or sandbox._group.remove(10)


def test_a_stuck_process_is_named_and_its_files_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sandbox = process.Process().launch(launch(tmp_path))
    pid = sandbox._process.pid
    with monkeypatch.context() as patch:
        patch.setattr(process, "CLOSE_S", 0.1)
        patch.setattr(tree, "kill", lambda pids: None)
        with pytest.raises(SandboxError, match=rf"processes \[{pid}\]"):
            sandbox.close()
    assert not sandbox._directory.exists()
    tree.kill({pid})
    sandbox._process.wait(10)


def test_a_process_that_begins_one_program_after_another_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """For a part of each `exec` the kernel shows no environment; a session of its own does not tell whose it is."""
    again = 'exec /bin/sh -c "$0" "$0"'
    pid = os.posix_spawn("/bin/sh", ["/bin/sh", "-c", again, again], {process.MARK: "of this test"}, setsid=True)
    try:
        with monkeypatch.context() as patch:
            patch.setattr(os, "listdir", lambda _: [str(pid)])  # it alone, so that it is looked at more often
            seen = [tree.marked(f"{process.MARK}=of this test", -1) for _ in range(1000)]
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    assert seen == [{pid}] * 1000


KILLED = "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n"


@pytest.mark.parametrize(
    ("files", "whose"),
    [
        ({}, "nobody's"),
        ({"memory.oom_control": KILLED.replace("2", "0"), "memory.max_usage_in_bytes": "9000\n"}, "nobody's"),
        ({"memory.oom_control": KILLED, "memory.max_usage_in_bytes": "9990\n"}, "its own"),
        ({"memory.oom_control": KILLED, "memory.memsw.max_usage_in_bytes": "10000\n"}, "its own"),
        ({"memory.oom_control": KILLED, "memory.max_usage_in_bytes": "5000\n"}, "the machine's"),
        ({"memory.events": "low 0\nmax 7\noom 0\noom_kill 0\n"}, "nobody's"),
        ({"memory.events": "low 0\nmax 7\noom 3\noom_kill 1\n"}, "its own"),
        ({"memory.events": "low 0\nmax 0\noom 0\noom_kill 1\n"}, "the machine's"),
    ],
)
def test_whose_lack_of_memory_the_kernel_killed_for(files: dict[str, str], whose: str, tmp_path: Path) -> None:
    for name, content in {"memory.limit_in_bytes": "10000\n", **files}.items():
        (tmp_path / name).write_text(content)
    if whose == "the machine's":
        with pytest.raises(SandboxError, match="had no memory left"):
            cgroup.exceeded(tmp_path)
    else:
        assert cgroup.exceeded(tmp_path) == (whose == "its own")


def test_the_group_of_a_process_is_that_of_its_child() -> None:
    with subprocess.Popen([sys.executable, "-c", SLEEP]) as child:
        try:
            assert cgroup.group_of(child.pid) == cgroup.group_of("self")
        finally:
            child.kill()
    assert cgroup.group_of(child.pid) is None
