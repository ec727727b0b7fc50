"""A database and ledgers that disagree, after one of them was restored from an older copy, or lost.

One server is killed with a grading in each state, which is the older copy; then it goes on until everything has ended.
Each test starts a server on another pair of the two, and lets it go on.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest

from benchmarks.service.connection import Refused
from benchmarks.service.served import SLUG
from harness.submission import Submission
from harness.wire.protocol import PROTOCOL
from kernelmark.project.settings import Settings
from kernelmark.record.recording import record
from kernelmark.service.submissions import ENDED
from tests.integration.service.site import ENDS, Site
from tests.verdicts import accepted

# In an order in which each can be reached beside those before it. `appended` is what an older database has anyway.
STATES = ("recorded", "done", "cancelled", "failed", "leased", "graded", "queued")
pytestmark = pytest.mark.full
SERVER, RECORD = Path(".kernelmark"), Path("leaderboard")


class Copies(NamedTuple):
    """The two copies, and the runs of both by the state in which they were in the older one."""

    site: Site
    older: Path
    newer: Path
    runs: dict[str, str]
    later: str
    """A run that the older copy does not have."""


@pytest.fixture
def copies(tmp_path: Path) -> Iterator[Copies]:
    site = Site(tmp_path / "project")
    run = site.submit()
    site.work()
    site.wait(run, "recorded")
    runs = dict[str, str]()
    with ExitStack() as held:
        for state in STATES:
            runs[state] = held.enter_context(site.reached(state))
        site.server.kill()
        older = copied(site.server.root, tmp_path / "older")
    site.server.start()
    site.answer(runs["leased"])
    site.work()
    later = site.submit()
    site.work()
    for each in (*runs.values(), later):
        site.wait(each, *ENDED)
    site.server.close()
    newer = copied(site.server.root, tmp_path / "newer")
    yield Copies(site, older, newer, runs, later)
    site.server.close()


def copied(root: Path, to: Path) -> Path:
    for folder in (SERVER, RECORD):
        shutil.copytree(root / folder, to / folder)
    return to


def restored(copies: Copies, server: Path | None, record: Path | None) -> Site:
    """Give the project a database and a record of these copies; None: there is none."""
    root = copies.site.server.root
    for folder, source in ((SERVER, server), (RECORD, record)):
        shutil.rmtree(root / folder)
        if source is not None:
            shutil.copytree(source / folder, root / folder)
    return copies.site


def check(site: Site, runs: dict[str, str]) -> None:
    """Every grading has the end that it should have, once; and the next one is recorded."""
    site.work()
    for state, run in runs.items():
        assert site.wait(run, *ENDED) == ENDS[state], state
    new = site.submit()
    site.work()
    site.wait(new, "recorded")
    times = site.server.recorded()
    assert max(times.values()) == 1
    assert {state for state, run in runs.items() if times[run]} == {s for s in runs if ENDS[s] == "recorded"}
    assert site.server.verify() == ""


def test_an_older_database_learns_from_the_ledger_what_was_recorded(copies: Copies) -> None:
    site = restored(copies, copies.older, copies.newer)
    before = site.server.recorded()
    site.server.start()
    check(site, copies.runs)
    times = site.server.recorded()
    assert times[copies.later] == 1
    assert set(before) <= set(times)


@pytest.mark.parametrize("record", ["older", "absent"])
def test_a_ledger_that_lost_lines_gets_them_back_by_repair(copies: Copies, record: str) -> None:
    site = restored(copies, copies.newer, copies.older if record == "older" else None)
    site.server.start(until="/health/live")
    with pytest.raises(Refused, match="503"):
        site.connection().ask("GET", "/health/ready")
    assert site.state(site.submit()) == "queued", "what is submitted meanwhile is kept"
    site.work()
    site.server.close()
    repaired = site.server.command("repair-ledger", "--append")
    assert repaired.returncode == 0, repaired.stdout + repaired.stderr
    site.server.start()
    check(site, copies.runs)
    assert site.server.recorded()[copies.later] == 1


def test_a_ledger_with_lines_of_somebody_else_is_appended_to(copies: Copies) -> None:
    site = restored(copies, copies.newer, copies.newer)
    known = next(iter(site.server.ledger.read())).verdict.problem.sha256
    submission = Submission.of("# bob\n", "py", author="bob")
    verdict = accepted(submission=submission, problem=SLUG, problem_sha256=known, protocol=PROTOCOL, run="f" * 16)
    record(Settings.load(site.server.root), submission, verdict)
    site.server.start()
    check(site, copies.runs)
    assert site.server.recorded()["f" * 16] == 1


def test_without_a_database_the_ledger_is_still_the_record(copies: Copies) -> None:
    site = restored(copies, None, copies.newer)
    before = site.server.recorded()
    site.server.start()
    assert site.server.recorded() == before
    assert site.server.verify() == ""
