"""`kernelmark worker` with real gradings in bubblewrap, for a server that the test plays."""

from __future__ import annotations

import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import pytest

from harness.problem.load import identify
from harness.sandbox.tree import tree
from harness.verdict import Check, Outcome, Verdict
from kernelmark.diagnostics.selftest import PROBLEMS
from tests.command import KERNELMARK, environment, kernelmark
from tests.fake_server import Document, FakeServer, lease_of
from tests.integration.test_fleets import grading, left_in
from tests.integration.test_sandboxes import eventually
from tests.leftovers import groups

pytestmark = [pytest.mark.bwrap, pytest.mark.alone]

RIGHT = "import torch\ndef twice(x, y): torch.mul(x, 2, out=y)\n"
RIGHT_AT_SHOWN_SIZES = "def twice(x, y):\n    y.copy_((2 if x.numel() not in (77, 78) else 3) * x)\n"
HANGS = "import time\ndef twice(x, y): time.sleep(1e6)\n"


@pytest.fixture
def scratch(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where all temporary files of the worker are; none is there at the end."""
    folder = Path(tempfile.mkdtemp(prefix="wo-"))
    monkeypatch.setenv("TMPDIR", str(folder))
    yield folder
    eventually(lambda: not left_in(folder) or None)
    shutil.rmtree(folder)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for slug in ("double", "double_hidden"):
        shutil.copytree(PROBLEMS / slug, tmp_path / "problems" / slug)
    (tmp_path / "kernelmark.toml").write_text('author = "organizer"\ndevice = "cpu"\nsandbox = "bwrap"\n')
    return tmp_path


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with FakeServer().serving() as server:
        yield server


Started = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture
def started(server: FakeServer, project: Path, scratch: Path) -> Iterator[Started]:
    """Starts the command with its token on stdin; all that it started is gone at the end."""
    made: list[subprocess.Popen[bytes]] = []
    seen = set[int]()

    def start(*options: str) -> subprocess.Popen[bytes]:
        hellos = len(server.hellos)
        heeding = ["env", "--default-signal=INT"]  # who runs the tests in the background ignores Ctrl-C
        command = [*heeding, *KERNELMARK, "worker", "--to", server.origin, "--token-file", "-", *options]
        with (project / "stderr").open("ab") as stderr:
            worker = subprocess.Popen(command, cwd=project, env=environment(), stdin=subprocess.PIPE, stderr=stderr)
        made.append(worker)
        typed(worker).write(b"kmw_secret\n")
        typed(worker).flush()
        server.until(lambda: len(server.hellos) > hellos)
        seen.update(tree({worker.pid}))
        return worker

    yield start
    for worker in made:
        if worker.poll() is None:
            seen |= tree({worker.pid})
            typed(worker).close()
            assert worker.wait(120) == 0
    eventually(lambda: not any(Path(f"/proc/{pid}").exists() for pid in seen) or None)
    assert groups(seen) == []


def typed(worker: subprocess.Popen[bytes]) -> IO[bytes]:
    assert worker.stdin is not None
    return worker.stdin


def lease(project: Path, source: str, number: int, problem: str = "double", **task: Any) -> Document:
    sha256 = identify(project / "problems" / problem)
    return lease_of(source, number, problem=problem, problem_sha256=sha256, **task)


def test_submissions_are_graded_as_they_are_here(server: FakeServer, started: Started, project: Path) -> None:
    """Two at a time; hidden tests run in a submission alone, and progress is told before an answer."""
    started("--slots", "2")
    leases = {
        "recorded": lease(project, RIGHT, 1, mode="submit"),
        "wrong where it is hidden": lease(project, RIGHT_AT_SHOWN_SIZES, 2, "double_hidden", mode="submit"),
        "shown": lease(project, RIGHT_AT_SHOWN_SIZES, 3, "double_hidden", mode="check"),
        "does not parse": lease(project, "def twice(", 4, mode="bench"),
    }
    for given in leases.values():
        server.lease(given)
    answers = {name: server.answer_to(given) for name, given in leases.items()}
    verdicts = {name: Verdict.from_json(answer["verdict"]) for name, answer in answers.items() if "verdict" in answer}
    check = Check.model_validate_json(answers["shown"]["check"])
    assert {name: verdict.outcome for name, verdict in verdicts.items()} == {
        "recorded": Outcome.ACCEPTED,
        "wrong where it is hidden": Outcome.WRONG_ANSWER,
        "does not parse": Outcome.COMPILE_ERROR,
    }
    assert (check.outcome, len(check.tests), check.tests_not_run) == (Outcome.ACCEPTED, 3, 0)
    for name, verdict in verdicts.items():
        task = leases[name]["task"]
        assert (verdict.run, verdict.submission.author, verdict.submission.name) == (task["run"], "ada", task["name"])
        assert verdict.problem.sha256 == task["problem_sha256"]
        assert verdict.environment.sandbox == "bwrap"
        assert verdict.environment.device_name == server.hellos[0]["pool"]
        assert verdict.to_json() == answers[name]["verdict"]
    told = [each for beat in server.beats for each in beat["held"] if each.get("progress")]
    stages = {each["progress"]["stage"] for each in told if each["lease"] == leases["recorded"]["lease"]}
    assert stages, "a stage that is over soon need not be among them"


@pytest.mark.full
def test_what_is_cancelled_ends_with_its_sandbox(server: FakeServer, started: Started, project: Path) -> None:
    worker = started()
    server.lease(leased := lease(project, HANGS, 1))
    below = eventually(lambda: grading(worker.pid))
    runners = below - tree({worker.pid}) or below
    server.end(leased["lease"])
    eventually(lambda: grading(worker.pid) is None or None)
    server.lease(other := lease(project, RIGHT, 2))
    assert "check" in server.answer_to(other)
    assert [answer["lease"] for answer in server.answers] == [other["lease"]]
    assert runners


def test_a_killed_worker_leaves_nothing_and_its_answers_are_sent_by_the_next(
    server: FakeServer, started: Started, project: Path, scratch: Path
) -> None:
    worker = started()
    server.hears_no_answer = True
    server.lease(leased := lease(project, RIGHT, 1, mode="submit"))
    server.until(lambda: leased["lease"] in server.held)
    server.lease(hangs := lease(project, HANGS, 2))
    server.until(lambda: hangs["lease"] in server.held)
    server.is_away = True
    [kept] = eventually(lambda: [*(project / ".kernelmark/worker").glob("*/*/*.json")] or None)
    below = eventually(lambda: grading(worker.pid))
    worker.send_signal(signal.SIGKILL)
    assert worker.wait() == -signal.SIGKILL
    eventually(lambda: not any(Path(f"/proc/{pid}").exists() for pid in below) or None)
    eventually(lambda: not left_in(scratch) or None)
    assert server.answers == []
    server.is_away = server.hears_no_answer = False
    started()
    answer = server.answer_to(leased)
    assert Verdict.from_json(answer["verdict"]).outcome is Outcome.ACCEPTED
    eventually(lambda: not kept.exists() or None)
    assert server.hellos[0]["instance"] != answer["instance"]


@pytest.mark.parametrize("how", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.full)])
def test_a_worker_that_is_asked_to_end_gives_back_what_it_holds(
    server: FakeServer, started: Started, project: Path, how: signal.Signals
) -> None:
    worker = started()
    server.lease(lease(project, HANGS, 1))
    eventually(lambda: grading(worker.pid))
    worker.send_signal(how)
    assert worker.wait(120) in (128 + how, -how)
    assert (server.beats[-1]["held"], server.beats[-1].get("leaves"), server.answers) == ([], True, [])
    assert "error" not in (project / "stderr").read_text()


def test_a_sandbox_that_does_not_isolate_is_refused_and_so_is_a_worker_without_a_token(
    server: FakeServer, project: Path
) -> None:
    ended = kernelmark(project, "worker", "--to", server.origin, "--sandbox", "process", KERNELMARK_TOKEN="kmw_secret")
    assert (ended.returncode, server.hellos) == (2, [])
    assert "the sandbox process does not isolate" in ended.stderr
    ended = kernelmark(project, "worker", "--to", server.origin)
    assert ended.returncode == 2
    assert "has no token; give --token-file or set KERNELMARK_TOKEN" in ended.stderr
    ended = kernelmark(project, "worker", KERNELMARK_TOKEN="kmw_secret")
    assert "--to is missing, and the project names no server" in ended.stderr
    ended = kernelmark(project, "worker", "--to", "http://bench.example.org", KERNELMARK_TOKEN="kmw_secret")
    assert "http is for this machine only" in ended.stderr


@pytest.mark.full
def test_no_process_that_a_worker_starts_has_its_token(server: FakeServer, project: Path, scratch: Path) -> None:
    (project / "token").write_text("kmw_secret\n")
    command = [*KERNELMARK, "worker", "--to", server.origin]
    worker = subprocess.Popen(command, cwd=project, env=environment() | {"KERNELMARK_TOKEN": "kmw_secret"})
    try:
        server.lease(lease(project, HANGS, 1))
        below = eventually(lambda: grading(worker.pid))
        shown = list[bytes]()
        for pid in below:
            with suppress(OSError):  # it belongs to another user, or has ended
                shown.append(Path(f"/proc/{pid}/environ").read_bytes())
        assert len(shown) > 1
        assert not any(b"kmw_secret" in environ for environ in shown)
    finally:
        worker.terminate()
        worker.wait(120)
