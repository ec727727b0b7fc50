"""`repair-ledger` gives a ledger back what it lost, and `import-ledger` takes in what another copy has recorded."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import update

from kernelmark.project.project import Project
from kernelmark.server.database.tables import audit, gradings
from kernelmark.server.lock import served
from leaderboard.record.archive import archive
from tests.unit.conftest import Command
from tests.unit.service.record.conftest import Stored


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stored]:
    """A project that was served; its folder is the working directory."""
    with closing(Stored(tmp_path / "project")) as stored:
        monkeypatch.chdir(stored.root)
        yield stored


@pytest.mark.parametrize("gone", ["cut", "absent", "another"])
def test_a_ledger_gets_back_what_it_lost(project: Stored, invoke: Command, gone: str) -> None:
    runs = [project.graded(number).run for number in range(2)]
    project.record()
    path = project.ledger().path
    older = path.read_bytes()
    runs += [project.graded(number).run for number in range(2, 4)]
    project.record()
    if gone == "absent":
        path.unlink()
    else:
        path.write_bytes(older)
    if gone == "another":
        other = project.submission("bob")
        archive(project.settings.locate("archive"), "vector_add", other)
        project.ledger().append(project.verdict(other, "b" * 16))
    lost = runs if gone == "absent" else runs[2:]
    result = invoke("repair-ledger")
    assert result.code == 7
    assert [run for run in runs if f"run {run} is missing" in result.out] == lost
    assert "`kernelmark repair-ledger --append`" in result.out
    shown = json.loads(invoke("repair-ledger", "--append", "--format", "json").out)["items"]
    assert [(found["problem"], found["appended"]) for found in shown] == [("vector_add", lost)]
    assert sorted(project.recorded()) == sorted([*runs, *(["b" * 16] if gone == "another" else [])])
    assert invoke("repair-ledger").out == "every ledger is as the server has left it\n"
    assert (invoke("verify").code, project.record().problems()) == (0, {})
    assert [row.action for row in project.rows(audit)] == ["repair-ledger"]
    later = project.graded(9).run
    project.record()
    assert project.recorded()[-1] == later


def test_what_is_not_kept_any_more_is_said_to_be_lost(project: Stored, invoke: Command) -> None:
    run = project.graded().run
    project.record()
    project.put(update(gradings).values(answer=None))
    project.ledger().path.unlink()
    result = invoke("repair-ledger", "--append")
    assert (result.code, "the server does not keep its verdict any more" in result.out) == (7, True)
    assert project.record().problems() == {}  # it goes on without that run
    assert project.row(run).state == "recorded"


def test_a_project_that_is_served_is_not_repaired(project: Stored, invoke: Command) -> None:
    with served(Project(project.root)):
        result = invoke("repair-ledger")
    assert (result.code, "is served already" in result.err) == (2, True)


def test_a_project_that_never_was_is_said_so(tmp_path: Path, invoke: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "kernelmark.toml").touch()
    monkeypatch.chdir(tmp_path)
    result = invoke("repair-ledger")
    assert (result.code, "was never served" in result.err) == (2, True)


def test_what_another_copy_recorded_is_taken_in_once(project: Stored, invoke: Command, tmp_path: Path) -> None:
    project.graded(0)
    project.record()
    shutil.copytree(project.root, tmp_path / "copy", ignore=shutil.ignore_patterns(".kernelmark"))
    mine = project.graded(1).run
    project.record()
    before = project.ledger().path.read_bytes()
    with closing(Stored(tmp_path / "copy", problems=())) as copy:
        remark = {"action": "late", "actor": "late policy", "reason": "a day late"}
        theirs = copy.graded(7, "e" * 16, remark=json.dumps(remark)).run
        copy.graded(8, "f" * 16, "softmax")
        copy.record()
    shown = json.loads(invoke("import-ledger", str(tmp_path / "copy"), "--format", "json").out)["items"]
    assert [(found["problem"], found["entries"], found["runs"]) for found in shown] == [
        ("softmax", 1, ["f" * 16]),
        ("vector_add", 2, [theirs]),
    ]
    assert project.ledger().path.read_bytes().startswith(before)  # no line is chained anew
    assert project.recorded()[1:] == [mine, theirs]
    assert (invoke("verify").code, project.record().problems()) == (0, {})
    after = project.ledger().path.read_bytes()
    assert "vector_add: nothing is missing" in invoke("import-ledger", str(tmp_path / "copy")).out
    assert project.ledger().path.read_bytes() == after


@pytest.mark.parametrize("fault", ["source", "story", "chain"])
def test_what_cannot_be_taken_in_whole_is_left_out(
    project: Stored, invoke: Command, tmp_path: Path, fault: str
) -> None:
    first = project.graded(0)
    project.record()
    before = project.ledger().path.read_bytes()
    with closing(Stored(tmp_path / "copy")) as copy:
        copy.graded(7, "e" * 16)
        copy.graded(8, "f" * 16, "softmax")
        copy.record()
        path = copy.ledger().path
        if fault == "source":
            shutil.rmtree(copy.settings.locate("archive") / "vector_add")
        elif fault == "story":
            copy.ledger().append(first.model_copy(update={"log": "another story"}))
        else:
            path.write_bytes(path.read_bytes().replace(b'"log":""', b'"log":"x"', 1))
    result = invoke("import-ledger", str(tmp_path / "copy"))
    assert (result.code, "softmax: 1 entry, 1 run, appended" in result.out) == (7, True)
    assert project.ledger().path.read_bytes() == before


def test_a_project_is_not_taken_into_itself(project: Stored, invoke: Command) -> None:
    result = invoke("import-ledger", ".")
    assert (result.code, "is this project itself" in result.err) == (2, True)
