"""The commands of the client against the server's own application, over HTTP on this machine."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from kernelmark.authoring.start import pytorch
from kernelmark.client import servers
from kernelmark.client.connection import Connection, Refused
from kernelmark.project.settings import Settings
from kernelmark.server.accounts import invitations
from kernelmark.server.service import Service
from kernelmark.service.accounts import Me
from tests.documents import items, valid
from tests.service_fixtures import clock, service, serving
from tests.unit.conftest import Command
from tests.unit.service.queue.queueing import POOL, Worker

__all__ = ["clock", "service"]
SUBMIT = ("submit", "twice", "kernel.py", "--to", "bench", "--no-wait")


@pytest.fixture
def live(service: Service) -> Iterator[Service]:
    """A service whose application listens at its address."""
    with serving(service) as live:
        live.files.refresh(live.database)
        yield live


@pytest.fixture
def bench(live: Service, run: Command, project: Path) -> Command:
    """The command line of the first organizer, who is signed in to `bench`."""
    now_ns, origin = live.clock.now_ns(), live.url
    secret = live.database.write(lambda connection: invitations.first(connection, now_ns)).result()
    (project / "kernel.py").write_text("def twice(x, out): out.copy_(x + x)\n")
    without = run("login", f"{origin}/join#{secret}")
    assert (without.code, "--name is missing" in without.err) == (2, True), without.err
    result = run("login", f"{origin}/join#{secret}", "--name", "grace", "--as", "bench")
    assert result.code == 0, result.err
    assert run("login", f"{origin}/join#{secret}", "--name", "eve").code == 2, "a link is used once"
    return run


def test_from_signing_in_to_signing_out(bench: Command, live: Service) -> None:
    Worker(live).hello()
    sent = bench(*SUBMIT)
    assert sent.code == 10, sent.err
    run = sent.out.strip()
    again = bench(*SUBMIT)
    assert (again.code, again.out.strip()) == (10, run)
    assert f"run {run}; --again grades it once more" in again.err
    anew = bench(*SUBMIT, "--again").out.strip()
    assert anew != run
    assert f"1 before yours on {POOL}" in bench("queue").out
    assert [item["run"] for item in items(bench("runs", "--from", "bench", "--format", "json").out)] == [anew, run]
    assert items(bench("runs", "softmax", "--from", "bench", "--format", "json").out) == []
    assert valid(bench("cancel", run[:9], "--format", "json").out)["state"] == "cancelled"
    cancelled = bench("watch", run)
    assert (cancelled.code, f"run {run} was cancelled; submit it again" in cancelled.err) == (2, True)
    token = servers.known()["bench"].token
    assert bench("logout", "bench").err == "signed out of bench\n"
    with Connection(live.url, token) as left, pytest.raises(Refused) as refused:
        left.get("me", Me)
    assert refused.value.status == 401


def test_what_the_server_refuses_is_said_in_one_line(bench: Command, live: Service) -> None:
    Worker(live).hello()
    for arguments, said in (
        (("submit", "none", "kernel.py"), "none"),
        (("submit", "twice", "kernel.py", "--device-name", "a toaster"), "a toaster"),
        (("watch", "0" * 16), "0" * 16),
        (("cancel", "0" * 16), "0" * 16),
        (("show", "0" * 16, "--from", "bench"), "0" * 16),
        (("board", "none", "--from", "bench"), "none"),
    ):
        more = ("--to", "bench") if arguments[0] == "submit" else ()
        done = bench(*arguments, *more, "--format", "json")
        error = json.loads(done.out)["error"]
        assert (done.code, error["code"], said in error["message"], bool(error["remedy"])) == (2, "usage", True, True)
        assert done.err.count("\n") == 1
    none = bench("select", "0" * 16, "--to", "bench")
    assert (none.code, none.err.count("\n")) == (2, 1)
    assert "select is for competitions in which authors select; the best run of each author counts here" in none.err


def test_a_problem_is_read_by_nobody_in_particular(bench: Command, live: Service) -> None:
    bench("logout", "bench")
    [slug] = live.files.snapshot.problems
    shown = bench("problems", "show", slug, "--from", live.url).out
    assert f"{live.files.snapshot.problems[slug].entry}(x, out): a function that writes into out" in shown
    absent = bench("problems", "show", "absent", "--from", live.url)
    assert (absent.code, "does not exist; known: `twice`" in absent.err) == (2, True), absent.err


def test_the_problems_of_a_server_are_listed_as_in_its_project(
    bench: Command, live: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = datetime.now(UTC)
    phase = f'[[phases]]\nname = "finals"\ndeadline = {(now + timedelta(days=1)).isoformat()}\nfreeze = "2d"\n'
    notice = f'[[announcements]]\nat = {(now - timedelta(days=1)).isoformat()}\ntext = "new rules"\n'
    limits = "[limits]\ngradings_a_day = 5\n"
    (live.project.root / "kernelmark.toml").write_text(limits + phase + notice)
    live.project.settings = Settings.load(live.project.root)
    live.files.refresh(live.database)
    there = [bench("problems", "list", "--from", "bench", *more) for more in ((), ("--format", "json"))]
    monkeypatch.chdir(live.project.root)
    monkeypatch.setenv("KERNELMARK_AUTHOR", "grace")
    here = [bench("problems", "list", *more) for more in ((), ("--format", "json"))]
    assert [said.out for said in there] == [said.out for said in here], there[0].err
    problem, _, frozen, finals, notice, left = there[0].out.splitlines()
    assert (problem, left) == ("twice  Twice", "you (grace) have left today: 5 of 5 gradings")
    assert ["the board is frozen" in frozen, "phase       finals, open" in finals, "new rules" in notice] == [True] * 3
    bench("logout", "bench")
    nobody = bench("problems", "list", "--from", live.url).out
    assert ("phase       finals" in nobody, "left today" in nobody) == (True, False)


def test_an_empty_board_of_a_server_says_that_it_is_frozen(bench: Command, live: Service) -> None:
    [slug] = live.files.snapshot.problems
    assert "frozen" not in bench("board", slug, "--from", live.url).err
    file = live.project.settings.locate("problems") / slug / "problem.toml"
    tomorrow = datetime.now(UTC) + timedelta(days=1)
    file.write_text(f'deadline = {tomorrow.isoformat()}\nfreeze = "2d"\n{file.read_text()}')
    live.files.refresh(live.database)
    for arguments in ((), (slug,)):
        board = bench("board", *arguments, "--from", live.url)
        assert board.out == "the board shows no submission yet\n"
        assert f"{slug}: the board is frozen, and shows nothing graded after" in board.err


def test_a_first_kernel_is_written_without_the_project(bench: Command, live: Service) -> None:
    bench("logout", "bench")
    begun = bench("start", "twice", "first.py", "--from", live.url)
    assert (begun.code, begun.out) == (0, f"kernelmark check twice first.py --to {live.url}\n"), begun.err
    there = bench("start", "twice", "first.py", "--from", live.url)
    assert (there.code, "first.py exists already" in there.err) == (2, True)
    assert Path("first.py").read_text() == pytorch.source(live.files.snapshot.problem("twice"))
    absent = bench("start", "absent", "--from", live.url)
    assert (absent.code, "does not exist; known: `twice`" in absent.err) == (2, True), absent.err
    assert not Path("absent.py").exists()


def test_a_board_is_read_by_nobody_in_particular(bench: Command, live: Service) -> None:
    bench("logout", "bench")
    assert items(bench("board", "--from", live.url, "--format", "json").out) == []
