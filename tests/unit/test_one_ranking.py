"""One ranking: terminal, Markdown, JSON, the exported tables and the site say the same rank and the same pooled time of
every row, and of the same rows that they are stale or have no rank."""

from __future__ import annotations

import json
import random
import re
from datetime import timedelta
from pathlib import Path
from typing import Any

from harness.verdict import Doubt, DoubtCode, Interval, Verdict
from harness.wire.protocol import PROTOCOL
from kernelmark.project.settings import Settings
from kernelmark.record import records
from leaderboard.record.ledger import JsonlLedger
from leaderboard.record.moderation import Moderation
from leaderboard.record.pooling import NO_RANK
from leaderboard.standings.ranking import Row, rank
from leaderboard.text.units import interval
from tests.documents import items
from tests.unit.conftest import Command
from tests.verdicts import EPOCH, accepted, failed

Standing = tuple[int, str, str]  # rank (0 without one), run, and the time with its interval
Stale = tuple[str, str, str]  # run, reason, and the run that took its place or nothing
SLUGS = ("double", "gelu", "softmax")


def fill(competition: Path) -> None:
    """Three problems on two devices, many shared ranks, sources of several gradings and without a rank, failures, runs
    set aside (by themselves, by source and by author), and rows that are stale by problem (`double`, which is there in
    another version), by protocol and by torch; the same every time."""
    draw = random.Random(7)
    for slug in SLUGS:
        ledger = JsonlLedger(competition / f"leaderboard/results/{slug}.jsonl")
        runs = []
        for number in range(12 if slug == "double" else 60):
            author, moment = f"author-{draw.randrange(20)}", EPOCH + timedelta(minutes=number)
            if draw.random() < 0.2:
                ledger.append(failed(author=author, problem=slug, created_at=moment))
                continue
            middle = draw.randrange(1000, 1100)
            wide = draw.random() < 0.15
            verdict = accepted(
                author=author,
                problem=slug,
                source=f"{author}'s {draw.randrange(2)}",
                protocol=PROTOCOL if draw.random() < 0.9 else PROTOCOL - 1,
                device_name=draw.choice(("NVIDIA H200", "NVIDIA L4")),
                score_ns=middle,
                low_ns=middle // 3 if wide else None,
                high_ns=3 * middle if wide else None,
                created_at=moment,
                modes=("calls",) if draw.random() < 0.15 else ("replayed",),
                ranked_timing="replayed",
                speedups={"eager": 1.5} if draw.random() < 0.5 else {},
            )
            if author == "author-7":
                known = Doubt(code=DoubtCode.KNOWN_INPUTS, text="the same with every seed")
                verdict = verdict.model_copy(update={"doubts": (*verdict.doubts, known)})
            runs.append(verdict)
            ledger.append(verdict if number > 30 else with_torch(verdict, "2.10.0"))
        event = {"action": "disqualify", "actor": "grace", "reason": "why", "created_at": EPOCH}
        one, source, author = draw.sample(runs, 3)
        ledger.moderate(Moderation(run=one.run, **event))
        sha256 = source.submission.sha256
        ledger.moderate(Moderation(run=source.run, scope="source", sha256=sha256, **event))
        ledger.moderate(Moderation(run=author.run, scope="author", author=author.submission.author, **event))


def with_torch(verdict: Verdict, version: str) -> Verdict:
    return verdict.model_copy(update={"environment": verdict.environment.model_copy(update={"torch": version})})


def stale_marks(row: Row) -> list[Stale]:
    return [(row.run, row.stale.reason, row.stale.again or "")] if row.stale else []


def standings_in_json(rows: list[dict[str, Any]]) -> list[Standing]:
    assert all((row.get("rank") is None) == (row["state"] in NO_RANK) for row in rows)
    return [(row.get("rank") or 0, row["run"], interval(Interval.model_validate(row["score"]))) for row in rows]


def in_json(rows: list[dict[str, Any]]) -> list[Stale]:
    found = ((row["run"], row.get("stale")) for row in rows)
    return [(run, stale["reason"], stale.get("again") or "") for run, stale in found if stale]


def in_markdown(text: str) -> tuple[list[Standing], list[Stale]]:
    """Every row whose first cell is a rank, or empty; the run is the first cell of 16 hexadecimal digits."""
    standings, stale = list[Standing](), list[Stale]()
    for place, rest in re.findall(r"^\| (\d*) \|(.*)$", text, re.MULTILINE):
        found = re.search(r"\| ([0-9a-f]{16}) \|", rest)
        if found is None:
            continue  # a row of another table, of cases
        assert bool(place) != any(why in rest for why in NO_RANK.values())
        standings.append((int(place or 0), found[1], rest.split("|")[3].strip()))
        stale += [(found[1], *said) for said in re.findall(r"stale: (.*?)(?:, graded again as (\w+))? \|", rest)]
    return standings, stale


def in_terminal(text: str) -> tuple[list[Standing], list[Stale]]:
    """Every row of `kernelmark board --all`; why it is stale stands below its table."""
    standings, stale = list[Standing](), list[Stale]()
    line = r"^ +(\d+|-)  author-\d+ +kernel.py +([\d.]+ \S+)  (\[.*?\]).*  ([0-9a-f]{16})(?:  (.*))?$"
    for table in text.split("\n\n"):
        reasons = dict[str, str]()
        rows = re.findall(line, table, re.MULTILINE)
        for which, reason in re.findall(r"^ +(.*) (?:is|are) stale: (.*)$", table, re.MULTILINE):
            runs = [row[3] for row in rows] if which == "all rows" else which.split(", ")
            reasons |= dict.fromkeys(runs, reason)
        for place, time, bounds, run, note in rows:
            assert (place == "-") == any(why in note for why in NO_RANK.values())
            standings.append((int(place.replace("-", "0")), run, f"{time} {bounds}"))
            found = re.search(r"stale(?:, graded again as (\w+))?", note)
            assert (found is not None) == (run in reasons)
            stale += [(run, reasons[run], found[1] or "")] if found else []
    return standings, stale


def in_html(text: str) -> tuple[list[Standing], list[str]]:
    """The standings on a page of the site, and the runs with the badge of a stale row; baselines have no rank."""
    standings, stale = list[Standing](), list[str]()
    row = r'<tr(?: class="first")?><td class="r"(?: data-v="\d+")?>(\d+|–)</td><th scope="row">(.*?)</tr>'
    for place, rest in re.findall(row, text, re.DOTALL):
        found = re.findall(r'<td><a class="run"[^>]*>(\w{16})</a></td>', rest)
        if 'class="name">eager' in rest:
            continue
        assert (place == "–") == any(why in rest for why in NO_RANK.values())
        time, bounds = re.findall(r'<td class="r" data-v="\d+">([^<]*)</td><td class="bounds">([^<]*)', rest)[0]
        standings.append((int(place.replace("–", "0")), found[0], f"{time} {bounds}"))
        stale += re.findall(r'<a class="badge" href="[^"]*runs/(\w{16}).html">stale</a>', rest)
    return standings, stale


def test_all_outputs_show_the_same_ranks_and_times(competition: Path, command: Command) -> None:
    fill(competition)
    settings = Settings.load()
    now = records.current(settings)
    tables = [table for ledger in records.ledgers(settings) for table in rank(ledger, now)]
    expected = [(row.rank or 0, row.run, interval(row.score)) for table in tables for row in table.rows]
    stale = [mark for table in tables for row in table.rows for mark in stale_marks(row)]
    assert len(expected) > 40
    assert len({place for place, *_ in expected}) > 5
    assert len(expected) > 2 * len({place for place, *_ in expected}), "many ranks are shared"
    assert {row.state for table in tables for row in table.rows} == {"ranks", *NO_RANK}
    assert {row.gradings for table in tables for row in table.rows} >= {1, 2}
    assert {event.scope for table in tables for run in table.set_aside for event in run.moderation} == {
        "run", "source", "author",
    }  # fmt: skip
    assert {reason.split(" ")[0] for _, reason, _ in stale} == {"the", "protocol", "torch"}
    assert {bool(again) for _, _, again in stale} == {True, False}

    rows = [row for table in items(command("board", "--write", "--format", "json").out) for row in table["rows"]]
    assert (standings_in_json(rows), in_json(rows)) == (expected, stale)
    terminal, marks = in_terminal(command("board", "--all").out)
    assert (terminal, marks) == (expected, stale)
    assert in_markdown((competition / "leaderboard/BOARD.md").read_text()) == (expected, stale)
    pages = [in_markdown((competition / f"leaderboard/boards/{slug}.md").read_text()) for slug in SLUGS]
    assert ([row for page in pages for row in page[0]], [mark for page in pages for mark in page[1]]) == (
        expected,
        stale,
    )
    assert command("export", "--out", "out").code == 0
    rows = [json.loads(line) for line in (competition / "out/verdicts.jsonl").read_text().splitlines()]
    stands = [row for row in rows if row["pooled_median_ns"] is not None]
    for row in stands:
        row["score"] = {key: row[f"pooled_{key}"] for key in ("median_ns", "low_ns", "high_ns", "confidence")}
    assert sorted(standings_in_json(stands)) == sorted(expected)
    assert [row["rank"] for row in rows if row not in stands] == [None] * (len(rows) - len(stands))
    exported = sorted((row["run"], row["stale"]) for row in rows if row["stale"] is not None)
    assert exported == sorted((run, reason) for run, reason, _ in stale)

    assert command("site", "build").code == 0
    site = competition / "site"
    documents = [json.loads((site / f"problems/{slug}.json").read_bytes()) for slug in SLUGS]
    rows = [row for document in documents for board in document["boards"] for row in board["rows"]]
    assert (standings_in_json(rows), in_json(rows)) == (expected, stale)
    found = [in_html((site / f"problems/{slug}.html").read_text()) for slug in SLUGS]
    assert [row for page in found for row in page[0]] == expected
    assert [run for page in found for run in page[1]] == [run for run, *_ in stale]
    for run, reason, _ in stale:
        assert f"<p>Stale: {reason}" in (site / f"runs/{run}.html").read_text()
    authors = [json.loads(path.read_bytes()) for path in (site / "authors").glob("*.json")]
    rows = [place["row"] for author in authors for place in author["places"]]
    assert (sorted(standings_in_json(rows)), sorted(in_json(rows))) == (sorted(expected), sorted(stale))
    runs = [json.loads(path.read_bytes()) for path in (site / "runs").glob("*.json")]
    on_runs = in_json([{"run": run["verdict"]["run"], "stale": run.get("stale")} for run in runs])
    assert sorted(on_runs) == sorted(stale)
    pooled = {run: time for row in runs if row.get("pooled") for run, time in [
        (row["verdict"]["run"], interval(Interval.model_validate(row["pooled"])))]}  # fmt: skip
    many = {row.run for table in tables for row in table.rows if row.gradings > 1}
    assert pooled == {run: time for _, run, time in expected if run in many}
    on_board = [row for row in runs if row["verdict"]["run"] in {run for _, run, _ in expected}]
    without = {row["verdict"]["run"] for row in on_board if row["state"] in NO_RANK}
    assert without == {run for rank, run, _ in expected if not rank}
    for path in (site / "compare").glob("*.json"):
        sides = [json.loads(path.read_bytes())[side] for side in ("one", "other")]
        beside = {(side["run"], interval(Interval.model_validate(side["score"]))) for side in sides}
        assert beside <= {(run, time) for _, run, time in expected}
    times = {run: time for _, run, time in expected}
    for run in many:
        assert f"gradings of this source: {times[run]}" in command("show", run).out
    for run, reason, again in stale:
        text = re.sub(r"<[^>]+>", "", (site / f"runs/{run}.html").read_text())
        assert f"Stale: {reason}{f', graded again as {again}' if again else ''}. It keeps its rank." in text
