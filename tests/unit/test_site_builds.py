"""Building the site again: a build writes only what changed, and the result does not depend on the builds before."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from harness.errors import LedgerError, UsageError
from leaderboard.record.ledger import JsonlLedger
from leaderboard.record.moderation import Moderation
from tests.sites import SiteProject, filled, run_of, statement, wrong
from tests.verdicts import EPOCH


@pytest.fixture
def project(tmp_path: Path) -> SiteProject:
    return filled(tmp_path)


def test_a_build_with_nothing_new_writes_nothing(project: SiteProject) -> None:
    before = project.files()
    assert project.build() == (0, len(before), 0)
    assert project.files() == before


def test_one_append_touches_only_pages_that_show_it(project: SiteProject) -> None:
    before = project.files()
    project.add(run_of("fay", 90_000, "8", created_at=EPOCH + timedelta(days=4)))
    written = project.build()
    after = project.files()
    touched = {path for path, file in after.items() if file != before.get(path)}
    expected = {"index", "devices", "authors", "problems/softmax", "authors/fay", f"runs/{'8' * 16}"}
    expected |= {f"compare/{'d' * 16}-{'8' * 16}", f"compare/{'b' * 16}-{'8' * 16}"}
    expected |= {f"authors/{name}" for name in ("ada", "bob", "cyd")}  # they now stand among four
    assert touched == {f"{name}.{suffix}" for name in expected for suffix in ("html", "json")}
    assert written.written == len(touched)


def test_others_may_write_while_pages_are_made(project: SiteProject, monkeypatch: pytest.MonkeyPatch) -> None:
    from leaderboard.publishing.site import folder

    monkeypatch.setattr("leaderboard.record.index._WAIT_S", 0.05)
    seen = list[int]()

    def recorded_meanwhile(*arguments: Any, real: Any = folder._made) -> Any:
        if not seen:
            project.add(run_of("gus", 80_000, "9"))
            JsonlLedger(project.root / "results/softmax.jsonl", project.index).facts()
            with closing(sqlite3.connect(project.root / "index.sqlite")) as database:
                seen.append(database.execute("SELECT count(*) FROM line WHERE author = 'gus'").fetchone()[0])
        return real(*arguments)

    monkeypatch.setattr(folder, "_made", recorded_meanwhile)
    project.add(run_of("fay", 90_000, "8"))
    project.build()
    assert seen == [1]
    assert f"runs/{'8' * 16}.html" in project.files()
    assert f"runs/{'9' * 16}.html" not in project.files()


def test_a_source_that_goes_is_on_no_page(project: SiteProject) -> None:
    def contents() -> dict[str, Any]:
        return {path: content for path, (_, content) in project.files().items()}

    before, archive, elsewhere = contents(), project.root / "archive", project.root / "elsewhere"
    archive.rename(elsewhere)
    project.build()
    assert not [path for path in project.out.rglob("*.html") if "Rows." in path.read_text()]
    elsewhere.rename(archive)
    project.build()
    assert contents() == before


def test_a_failed_run_touches_its_authors_page_and_the_counts(project: SiteProject) -> None:
    before = project.files()
    project.add(wrong(author="eve", run="7" * 16))
    project.build()
    touched = {path for path, file in project.files().items() if file != before.get(path)}
    assert touched == {
        f"{name}.{suffix}" for name in ("index", "authors", "authors/eve") for suffix in ("html", "json")
    }


def test_stale_rows_rebuild_only_pages_showing_them(project: SiteProject, monkeypatch: pytest.MonkeyPatch) -> None:
    from leaderboard.publishing.site import folder

    due: set[str] = set()
    monkeypatch.setattr(
        folder, "_made", lambda at, page, *rest, real=folder._made: due.add(page.paths[0]) or real(at, page, *rest)
    )
    before = project.files()

    def touched() -> set[str]:
        nonlocal before
        due.clear()
        project.build()
        after = project.files()
        found = {path for path, file in after.items() if file != before.get(path) and path.endswith(".html")}
        assert due == found, "nothing is made that stays as it was"
        before = after
        return found

    rows = {
        "problems/softmax",
        *(f"runs/{run * 16}" for run in "bcd"),
        *(f"authors/{name}" for name in ("ada", "bob", "cyd")),
    }
    project.problems["softmax"] = "f" * 64
    assert touched() == {f"{name}.html" for name in {*rows, "index", "devices"}}
    assert "Stale: the problem changed" in project.html(f"runs/{'d' * 16}.html")
    assert "stale" not in project.html(f"runs/{'a' * 16}.html"), "it stands on no board"
    del project.problems["softmax"]
    assert touched() == {f"{name}.html" for name in {*rows, "index", "devices"}}
    project.protocol = 2
    assert touched() == {f"{name}.html" for name in {*rows, "index", "devices", "problems/gelu", f"runs/{'e' * 16}"}}
    project.protocol = 1
    touched()
    assert touched() == set()
    again = run_of("bob", 50_000, "9", created_at=EPOCH + timedelta(days=9))
    ran = again.environment.model_copy(update={"torch": "2.12.0"})
    project.add(again.model_copy(update={"environment": ran}))
    compared = {f"compare/{pair[0] * 16}-{pair[1] * 16}" for pair in ("9c", "9d")}
    changed = {*rows, *compared, f"runs/{'9' * 16}", "index", "devices", "authors"}
    assert touched() == {f"{name}.html" for name in changed}
    assert project.json(f"runs/{'c' * 16}.json")["stale"] == {"reason": "torch 2.11.0, now 2.12.0"}
    assert "stale" not in project.json(f"runs/{'9' * 16}.json"), "its file was graded again"


def test_an_event_between_two_builds_is_on_the_authors_page(project: SiteProject) -> None:
    ledger = JsonlLedger(project.root / "results" / "softmax.jsonl")
    for action in ("disqualify", "reinstate"):
        ledger.moderate(Moderation(run="b" * 16, action=action, actor="org", reason="why", created_at=EPOCH))
    project.build()
    (place,) = project.json("authors/bob.json")["places"]
    assert [event["action"] for event in place["row"]["moderation"]] == ["disqualify", "reinstate"]
    assert "reinstate by" in project.html("authors/bob.html")


def test_an_outdated_page_is_removed(project: SiteProject) -> None:
    compared = project.out / "compare" / f"{'b' * 16}-{'c' * 16}.html"
    assert compared.exists()
    project.add(run_of("cyd", 40_000, "8", created_at=EPOCH + timedelta(days=4)))
    assert project.build().removed > 0
    assert not compared.exists()
    assert not [path for path in project.out.rglob("*") if path.name.endswith(".partial")]


def test_building_bit_by_bit_gives_the_same_bytes_as_building_at_once(project: SiteProject, tmp_path: Path) -> None:
    for step, author in enumerate(("fay", "ada", "eve"), start=1):
        project.add(run_of(author, 61_000 - 4000 * step, str(step), created_at=EPOCH + timedelta(days=5 + step)))
        project.build()
    by_bits = {path: content for path, (_, content) in project.files().items()}
    project.out = tmp_path / "other"
    project.out.with_name("site.cache").rename(tmp_path / "unused.cache")
    project.build()
    assert {path: content for path, (_, content) in project.files().items()} == by_bits


def test_a_file_that_was_changed_or_removed_is_made_again(project: SiteProject) -> None:
    good = project.html("index.html")
    (project.out / "index.html").write_bytes(b"torn")
    (project.out / "devices.html").unlink()
    project.build()
    assert project.html("index.html") == good
    assert (project.out / "devices.html").exists()


def test_the_next_build_repairs_a_killed_one(
    project: SiteProject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from leaderboard.publishing.site import folder

    whole = {path: content for path, (_, content) in project.files().items()}
    project.out, put = tmp_path / "other", folder._put
    project.out.with_name("site.cache").rename(tmp_path / "unused.cache")

    def killed(path: str, content: bytes, temporary: Path) -> None:
        put(path, content, temporary)
        if path.endswith(f"/{'d' * 16}.html"):
            raise KeyboardInterrupt

    monkeypatch.setattr(folder, "_put", killed)
    with pytest.raises(KeyboardInterrupt):
        project.build()
    assert (project.out / "index.html").is_file()
    assert not list(project.out.glob("compare/*.html")), "it did not get that far"
    monkeypatch.setattr(folder, "_put", put)
    begun = project.out / "runs" / f"{'d' * 16}.html"
    assert begun.is_file()
    project.statements = project.statements[1:]
    (project.root / "results" / "softmax.jsonl").rename(tmp_path / "away")
    project.build()
    assert not begun.exists(), "no page any more"
    project.statements = [statement("softmax"), *project.statements]
    (tmp_path / "away").rename(project.root / "results" / "softmax.jsonl")
    project.build()
    assert {path: content for path, (_, content) in project.files().items()} == whole


def test_a_new_version_of_the_code_rebuilds_all(project: SiteProject, monkeypatch: pytest.MonkeyPatch) -> None:
    from leaderboard.publishing.site import build

    before = project.files()
    monkeypatch.setattr(build, "_version", lambda: "another")
    assert project.build().written == 0, "the same bytes are not written again"
    assert project.files() == before


def test_the_version_covers_all_code_that_a_page_may_depend_on_and_no_results() -> None:
    from harness.verdict import doubt
    from leaderboard.publishing.site import build, markup
    from leaderboard.standings import ranking
    from leaderboard.text import units

    code = build._code()
    assert {Path(module.__file__) for module in (doubt, markup, ranking, units)} <= {*code}
    assert markup.HERE / "templates" / "run.html" in code
    assert {path.relative_to(markup.HERE.parents[2]).parts[:2] for path in code} >= {("leaderboard", "standings")}
    assert not [path for path in code if {"archive", "results"} & {*path.relative_to(markup.HERE.parents[2]).parts}]


def test_a_broken_ledger_is_an_error_and_the_site_stays(project: SiteProject) -> None:
    before = project.files()
    path = project.root / "results" / "softmax.jsonl"
    path.write_bytes(path.read_bytes().replace(b"ada", b"adx", 1) + b"\n")
    with pytest.raises(LedgerError, match=r"softmax\.jsonl line 1"):
        project.build()
    assert project.files() == before


def test_pages_of_somebody_else_are_left_alone(tmp_path: Path) -> None:
    project = SiteProject(tmp_path)
    project.out.mkdir()
    (project.out / "index.html").write_text("mine")
    with pytest.raises(UsageError, match=r"has an index\.html that no build wrote"):
        project.build()
    assert project.html("index.html") == "mine"
