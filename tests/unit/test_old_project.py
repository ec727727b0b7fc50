"""A project of version 0.1.0 stays readable: its record, its standings, and all that is published of them."""

from __future__ import annotations

import html
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from harness.verdict import Outcome, ProblemId, Verdict
from leaderboard.record.entry import EXEMPT, MODERATION, VERDICT
from leaderboard.record.ledger import JsonlLedger
from tests.documents import valid
from tests.old_project import copied, ledgers, reduced, standings
from tests.unit.conftest import Command

GONE = "attention_backward"  # its ledger is there, and no folder of that name among the problems


@pytest.fixture
def old(tmp_path: Path, no_settings: None, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the old project, which is the working directory."""
    project = copied(tmp_path)
    monkeypatch.chdir(project)
    return project


def verdicts(project: Path) -> list[Verdict]:
    return [entry.verdict for ledger in ledgers(project) for entry in ledger.read() if entry.kind == VERDICT]


def printed(invoke: Command, *arguments: str) -> Any:
    """What a command prints as JSON; it must end well."""
    result = invoke(*arguments, "--format", "json")
    assert result.code == 0, result.err
    document = valid(result.out)
    return document.get("items", document)


def of_run(text: str, run: str) -> list[str]:
    """The cells of the line of a Markdown table that names a run."""
    [line] = [line for line in text.splitlines() if f"| {run} |" in line]
    return re.split(r" ?\| ?", line)[1:-1]


def test_the_ledgers_hold_all_that_one_can_hold(old: Path) -> None:
    """Otherwise the other tests say less than their names."""
    found = verdicts(old)
    assert {each.outcome for each in found} == {*Outcome} - {Outcome.INCOMPLETE}
    assert {case.mode for each in found for case in each.benchmarks} == {"calls", "graphs", "replayed"}
    assert {(each.environment.device_kind, each.protocol) for each in found} == {("cpu", 4), ("cuda", 3), ("cuda", 4)}
    assert {each.environment.sandbox for each in found} == {"bwrap", "docker", "process"}
    assert {each.submission.language for each in found} == {"py", "cpp", "cu"}
    assert any(each.submission.beside for each in found)
    assert any(each.problem.private for each in found)
    assert any(each.environment.interpreted and each.score for each in found)
    assert {each.effort for each in found} == {"default", "quick", "thorough"}
    assert {entry.kind for ledger in ledgers(old) for entry in ledger.read()} == {VERDICT, MODERATION, EXEMPT}
    events = [entry.moderation for ledger in ledgers(old) for entry in ledger.read() if entry.kind == MODERATION]
    assert {event.action for event in events} == {"annotate", "disqualify", "late", "reinstate"}
    assert {event.scope for event in events} == {"author", "run", "source"}
    rows = [row for table in standings() for row in table["rows"]]
    assert {run["state"] for table in standings() for run in table["set_aside"]} == {"disqualified", "late"}
    assert {row["rank"] for row in rows} >= {1, 2, 3, None}
    assert any(row["gradings"] > 1 for row in rows)


def test_every_line_is_read_and_follows_from_the_one_before(old: Path) -> None:
    for ledger in ledgers(old):
        lines = ledger.path.read_bytes().splitlines()
        assert ledger.verify() == len(lines) > 0
        kinds = Counter(entry.kind for entry in ledger.read())
        assert kinds[VERDICT] + kinds[MODERATION] + kinds[EXEMPT] == len(lines)
        for line, entry in zip(lines, ledger.read(), strict=True):
            if entry.kind == VERDICT:
                document = json.loads(line)["verdict"]
                assert (entry.verdict.run, entry.verdict.outcome) == (document["run"], document["outcome"])


def test_nothing_is_wrong_with_the_record(old: Path, invoke: Command) -> None:
    checked = {Path(each["path"]).stem: each for each in printed(invoke, "verify")}
    assert {slug: each["entries"] for slug, each in checked.items()} == {
        ledger.path.stem: len(ledger.path.read_bytes().splitlines()) for ledger in ledgers(old)
    }
    assert [each["faults"] for each in checked.values()] == [[]] * len(checked)


def test_a_changed_line_and_a_missing_source_are_found(old: Path, invoke: Command) -> None:
    ledger, source = old / "leaderboard/results/affine.jsonl", next(old.glob("leaderboard/archive/twice/ada/*.py"))
    ledger.write_bytes(ledger.read_bytes().replace(b'"author":"bob"', b'"author":"eve"', 1))
    source.unlink()
    result = invoke("verify")
    assert result.code == 7
    assert "affine.jsonl:2 was changed after it was written" in result.out.replace("\n", " ")
    digits, name = source.name.split("-", 1)  # a new name would have all digits of the hash
    assert re.search(rf"{digits}[0-9a-f]+-{name}: the archived source cannot be read", result.out.replace("\n", ""))


def test_problems_that_moved_are_the_same_problems(old: Path, invoke: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also imported ones, which name their files by their place in the project, and one with private cases."""
    monkeypatch.setenv("KERNELMARK_PRIVATE_CASES", str(old.parent / "private"))
    checked = {
        Path(each["path"]).stem: (each["known"], each["stale"], each["unknown"]) for each in printed(invoke, "verify")
    }
    by_slug: dict[str, list[ProblemId]] = {}
    for verdict in verdicts(old):
        by_slug.setdefault(verdict.problem.slug, []).append(verdict.problem)
    for slug, of in by_slug.items():
        newest = sum(each == of[-1] for each in of)
        assert checked[slug] == ((0, 0, len(of)) if slug == GONE else (newest, len(of) - newest, 0))


def test_the_standings_are_what_they_were(old: Path, invoke: Command) -> None:
    assert reduced(printed(invoke, "board")) == standings()


def test_the_board_shows_every_row_and_what_was_set_aside(old: Path, invoke: Command) -> None:
    board, pages = old / "leaderboard/BOARD.md", old / "leaderboard/boards"
    board.unlink()
    for page in pages.iterdir():
        page.unlink()
    assert invoke("board", "--write").code == 0
    assert board.read_text().startswith("# Kernels of 2020\n")
    for table in standings():
        for text in (board.read_text(), (pages / f"{table['problem']}.md").read_text()):
            for row in table["rows"]:
                rank, who, *_ = of_run(text, row["run"])
                assert (rank, who.replace("\\", "")) == (str(row["rank"] or ""), row["who"])
            for run in table["set_aside"]:
                state, who, *_ = of_run(text, run["run"])
                assert (state, who.replace("\\", "")) == (run["state"], run["who"])
    assert "../archive/twice/" in (pages / "twice.md").read_text()
    assert "../archive/row_sum/" in (pages / "row_sum.md").read_text()  # its deadline is past
    assert "../archive/affine/" not in (pages / "affine.md").read_text()  # its deadline never comes


def test_the_site_has_the_same_ranks_and_a_page_for_each_row(old: Path, invoke: Command) -> None:
    assert invoke("site", "build", "--out", "public").code == 0
    public = old / "public"
    for table in standings():
        document = json.loads((public / "problems" / f"{table['problem']}.json").read_bytes())
        [board] = [each for each in document["boards"] if _same(each["key"], table)]
        assert [(row["run"], row.get("rank")) for row in board["rows"]] == [
            (row["run"], row["rank"]) for row in table["rows"]
        ]
        assert [run["run"] for run in board["set_aside"]] == [run["run"] for run in table["set_aside"]]
        for row in table["rows"]:
            page = text(public / "runs" / f"{row['run']}.html")
            assert row["who"].removeprefix("quickfix (").removesuffix(")") in page
            assert row["file"] in page
    shown = "".join(text(page) for page in public.rglob("*.html"))
    assert "torch.mul(x, 2, out=y)" in shown  # of `twice`, which is open to all
    assert 'torch.einsum("rc->r", x)' in shown  # of `row_sum`, which is closed
    assert "torch.add(shift, x, alpha=factor, out=y)" not in shown  # of `affine`, whose deadline never comes


def text(page: Path) -> str:
    return html.unescape(re.sub(r"<[^>]*>", "", page.read_text()))


def test_every_run_is_shown(old: Path, invoke: Command) -> None:
    for verdict in verdicts(old):
        result = invoke("show", verdict.run)
        assert result.code == 0, result.err
        assert result.out.startswith(verdict.outcome.replace("_", " "))
        assert verdict.run in result.out
        assert printed(invoke, "show", verdict.run)["run"] == verdict.run


def test_every_run_is_listed_and_exported(old: Path, invoke: Command) -> None:
    found = {verdict.run: verdict for verdict in verdicts(old)}
    listed = printed(invoke, "runs", "--last", "1000")
    assert {each["run"]: each["outcome"] for each in listed} == {run: each.outcome for run, each in found.items()}
    assert invoke("export", "--out", "record").code == 0
    exported = [json.loads(line) for line in (old / "record/verdicts.jsonl").read_text().splitlines()]
    assert {each["run"]: each["median_ns"] for each in exported} == {
        run: each.score and each.score.median_ns for run, each in found.items()
    }
    cases = [json.loads(line) for line in (old / "record/cases.jsonl").read_text().splitlines()]
    assert len(cases) == sum(len(each.tests) + len(each.benchmarks) for each in found.values())


def test_the_sources_are_compared(old: Path, invoke: Command) -> None:
    pairs = [{pair["one"]["author"], pair["other"]["author"]} for pair in printed(invoke, "similar", "twice")]
    assert {"lena", "mallory"} in pairs
    [slow] = [verdict.run for verdict in verdicts(old) if verdict.submission.name == "slow.py"]
    quick = next(verdict.run for verdict in verdicts(old) if verdict.submission.name == "torch_mul.py")
    result = invoke("show", quick, slow, "--diff")
    assert result.code == 0, result.err
    assert "+    torch.mul(x, 2, out=y)" in result.out


def test_an_old_ledger_is_moderated_and_goes_on(old: Path, invoke: Command) -> None:
    table = standings("twice")[0]
    first = table["rows"][0]["run"]
    assert invoke("moderate", "disqualify", first, "--actor", "ivo", "--reason", "late news").code == 0
    ledger = JsonlLedger(old / "leaderboard/results/twice.jsonl")
    assert ledger.verify() == len(ledger.path.read_bytes().splitlines())
    [now] = [each for each in reduced(printed(invoke, "board", "twice")) if each["rows"] and _same(each, table)]
    assert first not in [row["run"] for row in now["rows"]]
    assert first in [run["run"] for run in now["set_aside"]]
    assert invoke("verify").code == 0


def _same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    names = ("problem_sha256", "protocol", "timing", "device_name", "isolated", "interpreted")
    return all(one[name] == other[name] for name in names)
