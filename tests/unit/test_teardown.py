"""The end of a sandbox: what cannot be ended or removed is named, and everything else is released all the same."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import docker
import pytest
import requests

from harness.errors import SandboxError
from harness.sandbox import Launch, bwrap, cgroup, process, tree, uids
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


def container(daemon: Any) -> tuple[Container, int]:
    made = Container(daemon, "c0ffee", uids.HIGH[0], 1 << 30)
    made._pidfd = os.pidfd_open(os.getpid())
    return made, made._pidfd


@pytest.mark.parametrize(
    ("answers", "asked"),
    [((None,), 1), ((SLOW, SLOW, None), 3), ((LATE, BUSY, BUSY, GONE), 4), ((ABSENT, ABSENT, GONE), 3)],
    ids=["at once", "a slow kill", "no answer in time", "a daemon that starts again"],
)
def test_a_container_is_removed_as_soon_as_the_daemon_can(
    answers: tuple[Exception | None, ...], asked: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(containers, "_AGAIN_S", 0.01)
    daemon = Daemon(*answers)
    made, pidfd = container(daemon)
    made.close()
    made.close()
    assert daemon.asked == asked
    assert not Path(f"/proc/self/fd/{pidfd}").exists()


@pytest.mark.parametrize(
    ("answer", "bound", "message"),
    [(SLOW, "CLOSE_S", "did not receive an exit event"), (ABSENT, "DAEMON_S", "start dockerd")],
    ids=["a kill without an end", "no daemon any more"],
)
def test_a_container_that_stays_is_an_error_in_the_end(
    answer: Exception, bound: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(containers, "_AGAIN_S", 0.01)
    monkeypatch.setattr(containers, bound, 0.1)
    made, pidfd = container(Daemon(answer))
    started = time.monotonic()
    with pytest.raises(SandboxError, match=message):
        made.close()
    assert time.monotonic() - started < 5
    assert not Path(f"/proc/self/fd/{pidfd}").exists()


def launch(directory: Path) -> Launch:
    script = directory / "script.py"
    script.write_text(SLEEP)
    (directory / "socket").touch()
    limits: dict[str, Any] = {"memory_bytes": 1 << 29, "processes": 64, "disk_bytes": 8 << 20}
    return Launch(socket=directory / "socket", device="cpu", program=script, **limits)


@pytest.mark.bwrap
def test_bubblewrap_that_cannot_be_ended_is_named_and_leaves_no_descriptor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.chmod(0o755)
    before = open_files().total()
    sandbox = bwrap.Bwrap().launch(launch(tmp_path))
    with monkeypatch.context() as patch:
        patch.setattr(bwrap, "CLOSE_S", 0.1)
        patch.setattr(signal, "pidfd_send_signal", lambda *_: None)
        with pytest.raises(SandboxError, match=f"first process {sandbox._init_pid} cannot be killed"):
            sandbox.close()
    sandbox.close()
    assert open_files().total() == before
    os.kill(sandbox._init_pid, signal.SIGKILL)
    sandbox._process.wait(10)
    assert sandbox._group is None or sandbox._group.remove(10)


def test_a_process_that_cannot_be_ended_is_named_and_its_files_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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


def test_what_the_kernel_killed_in_a_group_is_counted(tmp_path: Path) -> None:
    assert cgroup.kills(tmp_path / "gone") == 0
    (tmp_path / "memory.oom_control").write_text("oom_kill_disable 0\nunder_oom 0\noom_kill 2\n")
    assert cgroup.kills(tmp_path) == 2
    (tmp_path / "memory.events").write_text("low 0\nmax 7\noom 3\noom_kill 1\n")
    assert cgroup.kills(tmp_path) == 1


def test_the_group_of_a_process_is_that_of_its_child() -> None:
    with subprocess.Popen([sys.executable, "-c", SLEEP]) as child:
        try:
            assert cgroup.group_of(child.pid) == cgroup.group_of("self")
        finally:
            child.kill()
    assert cgroup.group_of(child.pid) is None
