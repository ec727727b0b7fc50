"""The resident worker without a grading: where it listens, whom it accepts, its key, and where none stays."""

from __future__ import annotations

import contextlib
import os
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path

import pytest

from harness import sandbox
from harness.problem import Limits
from kernelmark.diagnostics.doctor import resident as doctor
from kernelmark.grading.resident import key, place
from kernelmark.grading.resident.command import off
from kernelmark.grading.resident.key import key_of
from kernelmark.grading.resident.standby import Plan, Standby, confines
from kernelmark.grading.setup import PreparedJob
from kernelmark.project.choice import providers
from kernelmark.project.settings import Settings

KEY = "f" * 64
PLAN = Plan(key=KEY, sandbox="bwrap", device="cpu", limits=Limits(), baselines=0, replayed=False)


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder for temporary files whose path is short enough for a socket's, and that other users may enter."""
    with tempfile.TemporaryDirectory(prefix="r-", dir="/tmp") as folder:
        Path(folder).chmod(0o755)
        monkeypatch.setattr(tempfile, "tempdir", folder)
        yield Path(folder)


class Waiting:
    """A standby that listens, without sandboxes, in a thread."""

    def __init__(self, idle_s: float = 600) -> None:
        where = place.socket_of(Path("/project"))
        assert where is not None
        listener = place.listen(where)
        assert listener is not None
        self.where, self.listener = where, listener
        self.ended: Future[socket.socket | None] = Future()
        self._standby = Standby(PLAN.model_copy(update={"idle_s": idle_s}))
        threading.Thread(target=self._wait, daemon=True).start()

    def _wait(self) -> None:
        self.ended.set_result(self._standby._accepted(self.listener))

    def call(self, message: str) -> bytes:
        """What a command gets that says this."""
        connection = place.connect(self.where)
        assert connection is not None
        with connection:
            socket.send_fds(connection, [message.encode()], [1, 2])
            try:
                return connection.recv(1)
            except ConnectionResetError:
                return b""


@pytest.fixture
def waiting(short: Path) -> Iterator[Waiting]:
    made = Waiting()
    yield made
    if not made.ended.done():
        made.call("end")
    assert made.ended.result(60) is None
    made.listener.close()


def test_only_its_user_can_enter_the_folder(short: Path) -> None:
    where = place.socket_of(Path("/project"))
    assert where is not None
    assert where.parent.stat().st_mode & 0o777 == 0o700
    assert where != place.socket_of(Path("/other"))
    where.parent.chmod(0o711)
    assert place.socket_of(Path("/project")) is None
    where.parent.rmdir()
    (elsewhere := short / "elsewhere").mkdir(mode=0o700)
    where.parent.symlink_to(elsewhere)
    assert place.socket_of(Path("/project")) is None, "a link, which whoever made it could change"


@pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user")
def test_another_user_is_refused_although_the_folder_lets_it_in(waiting: Waiting) -> None:
    waiting.where.parent.chmod(0o755)
    waiting.where.chmod(0o777)
    other = os.fork()
    if other == 0:
        try:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
            connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            connection.connect(str(waiting.where))
            with contextlib.suppress(ConnectionResetError, BrokenPipeError):
                socket.send_fds(connection, [KEY.encode()], [1, 2])
                os._exit(5 if connection.recv(1) else 3)
            os._exit(3)
        finally:
            os._exit(4)
    assert os.waitstatus_to_exitcode(os.waitpid(other, 0)[1]) == 3, "it connected, and was hung up on"
    assert place.waiting(waiting.where) == os.getpid()
    assert not waiting.ended.done(), "it waits on for its own user"


def test_another_users_socket_is_not_believed(waiting: Waiting, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(place.os, "geteuid", lambda: 12345)
        assert place.connect(waiting.where) is None


@pytest.mark.parametrize("message", ["0" * 64, "end", "\0" * 64])
def test_a_request_with_another_key_ends_the_resident_worker(waiting: Waiting, message: str) -> None:
    assert place.waiting(waiting.where) == os.getpid(), "who only asks does not"
    assert waiting.call(message) == b""
    assert waiting.ended.result(60) is None


def test_an_idle_resident_worker_ends(short: Path) -> None:
    assert Waiting(idle_s=0.01).ended.result(60) is None


def test_one_at_a_time_listens_and_a_killed_one_is_replaced(short: Path) -> None:
    where = place.socket_of(Path("/project"))
    assert where is not None
    first = place.listen(where)
    assert first is not None
    assert place.listen(where) is None
    first.close()
    assert place.waiting(where) is None
    second = place.listen(where)
    assert second is not None
    second.close()


Change = Callable[[Path, pytest.MonkeyPatch], None]


def _append(name: str) -> Change:
    def change(project: Path, _: pytest.MonkeyPatch) -> None:
        with (project / name).open("a") as file:
            file.write("\n")

    return change


def _setting(line: str) -> Change:
    def change(project: Path, _: pytest.MonkeyPatch) -> None:
        (project / "kernelmark.toml").write_text((project / "kernelmark.toml").read_text() + line)

    return change


def _private(project: Path, _: pytest.MonkeyPatch) -> None:
    (project.parent / "private/double.toml").write_text(
        'salt = "0123456789abcdef0123456789abcdef"\n[[tests]]\nname = "p"\nparams = { n = 7 }\n'
    )


def _version(_: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key.kernelmark, "__version__", "9")


def _source(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "copy/kernelmark").mkdir(parents=True)
    (project / "copy/kernelmark/__init__.py").touch()
    monkeypatch.setattr(key.kernelmark, "__file__", str(project / "copy/kernelmark/__init__.py"))


ENDS: dict[str, Change] = {
    "a problem": _append("problems/double/problem.toml"),
    "a reference": _append("problems/double/reference.py"),
    "a private case": _private,
    "a setting": _setting('image = "other:latest"\n'),
    "the version": _version,
    "the sources": _source,
    "the environment": lambda _, monkeypatch: monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "7"),
    "the PATH": lambda _, monkeypatch: monkeypatch.setenv("PATH", f"/elsewhere:{os.environ['PATH']}"),
    "the groups": lambda _, monkeypatch: monkeypatch.setattr(key.os, "getgroups", lambda: [4711]),
}
STAYS: dict[str, Change] = {
    "nothing": lambda _, __: None,
    "the terminal": lambda _, monkeypatch: monkeypatch.setenv("TERM", "vt100"),
    "the folder": lambda project, monkeypatch: monkeypatch.chdir(project / "problems"),
    "the author": _setting('author = "bob"\n'),
    "the effort": _setting('effort = "thorough"\n'),
    "the submission": lambda project, _: (project / "kernel.py").write_text("def twice(x, y): ...\n") and None,
}


def _key(project: Path) -> str:
    settings = Settings.load(project, private_cases=project.parent / "private")
    found = key_of(PreparedJob.prepare(settings, "double", project / "kernel.py", author="ada"))
    assert found is not None
    return found


@pytest.mark.parametrize(("changes", "same"), [*((c, False) for c in ENDS), *((c, True) for c in STAYS)])
def test_the_key_of_the_resident_worker_changes_with_its_environment(
    competition: Path, monkeypatch: pytest.MonkeyPatch, changes: str, same: bool
) -> None:
    (competition / "kernelmark.toml").write_text('sandbox = "bwrap"\n')
    (competition / "kernel.py").write_text("def twice(x, y): y.copy_(2 * x)\n")
    (competition.parent / "private").mkdir()
    before = _key(competition)
    {**ENDS, **STAYS}[changes](competition, monkeypatch)
    assert (_key(competition) == before) is same


@pytest.mark.parametrize(
    ("name", "root", "confined"),
    [("docker", True, True), ("docker", False, True), ("bwrap", True, True), ("bwrap", False, False),
     ("process", True, False)],
)  # fmt: skip
def test_no_resident_for_the_same_user(monkeypatch: pytest.MonkeyPatch, name: str, root: bool, confined: bool) -> None:
    provider = sandbox.provider(name)  # type: ignore[arg-type]
    with monkeypatch.context() as patched:
        patched.setattr(place.os, "geteuid", lambda: 0 if root else 1000)
        assert confines(provider, Path("/tmp/kernelmark-resident-0/it.sock")) is confined


def test_none_waits_where_a_sandbox_shows_its_socket(tmp_path: Path) -> None:
    found = {p.name: confines(p, tmp_path / "it.sock") for p in providers(Settings(docker_binds=(tmp_path,)))}
    assert not found["docker"]


@pytest.mark.parametrize(
    ("variable", "value", "why"),
    [("CI", "true", "CI=true"), ("KERNELMARK_DEBUG", "1", "KERNELMARK_DEBUG is set"), ("HOME", "/", "")],
)
def test_when_no_worker_stays_resident(monkeypatch: pytest.MonkeyPatch, variable: str, value: str, why: str) -> None:
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.delenv("KERNELMARK_DEBUG", raising=False)
    monkeypatch.setenv(variable, value)
    assert off(Settings(), "cpu") == off(Settings(resident=True), "cuda") == why
    assert off(Settings(resident=False), "cpu") == "the setting `resident` is false"
    assert off(Settings(), "cuda") == "on a GPU only the setting `resident = true` turns it on"


def test_doctor_says_whether_one_waits_and_ends_it(short: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    settings = Settings(root=Path("/project"))
    assert doctor.waits(Settings(resident=False)).text == "off, because the setting `resident` is false"
    assert doctor.waits(settings).text.startswith("no worker waits; `submit`, `check` and `bench` leave one")
    assert doctor.end_resident(settings) == "no resident worker waits here"
    made = Waiting()
    assert f"process {os.getpid()} waits" in doctor.waits(settings).text
    assert "doctor --end-resident" in doctor.waits(settings).text
    assert not made.ended.done()
    made.call("end")
    made.ended.result(60)
    made.listener.close()
    made.where.parent.chmod(0o755)
    assert doctor.waits(settings).status == "warn"
