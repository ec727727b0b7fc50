"""One ranking: terminal, both kinds of Markdown, JSON and the exported tables say the same rank of every run."""

from __future__ import annotations

import json
import random
import re
from datetime import timedelta
from pathlib import Path

from kernelmark import project
from kernelmark.settings import Settings
from leaderboard.ledger import JsonlLedger
from leaderboard.moderation import Moderation
from leaderboard.ranking import rank
from tests.unit.conftest import Command
from tests.verdicts import EPOCH, accepted, failed

Standing = tuple[int, str]


def fill(competition: Path) -> None:
    """Two problems on two devices, many shared ranks, failures, two runs set aside; the same every time."""
    draw = random.Random(7)
    for slug in ("gelu", "softmax"):
        ledger = JsonlLedger(competition / f"leaderboard/results/{slug}.jsonl")
        runs = []
        for number in range(60):
            author, moment = f"author-{draw.randrange(20)}", EPOCH + timedelta(minutes=number)
            if draw.random() < 0.2:
                ledger.append(failed(author=author, problem=slug, created_at=moment))
                continue
            verdict = accepted(
                author=author,
                problem=slug,
                device_name=draw.choice(("NVIDIA H200", "NVIDIA L4")),
                score_ns=draw.randrange(1000, 1100),
                created_at=moment,
                modes=("graphs",),
                speedups={"eager": 1.5} if draw.random() < 0.5 else {},
            )
            runs.append(verdict.run)
            ledger.append(verdict)
        for run in draw.sample(runs, 3):
            event = Moderation(run=run, action="disqualify", actor="grace", reason="why", created_at=EPOCH)
            ledger.moderate(event)


def in_markdown(text: str) -> list[Standing]:
    """Rank and run of every row whose first cell is a rank; the run is the first cell of 16 hexadecimal digits."""
    rows = re.findall(r"^\| (\d+) \|(.*)$", text, re.MULTILINE)
    found = ((rank, re.search(r"\| ([0-9a-f]{16}) \|", rest)) for rank, rest in rows)
    return [(int(rank), run[1]) for rank, run in found if run]


def test_every_way_to_read_the_board_gives_the_same_ranks(competition: Path, command: Command) -> None:
    fill(competition)
    ledgers = project.ledgers(Settings.load())
    expected = [(row.rank, row.run) for each in ledgers for table in rank(each.read()) for row in table.rows]
    assert len(expected) > 40
    assert len({place for place, _ in expected}) > 5
    assert len(expected) > 2 * len({place for place, _ in expected}), "many ranks are shared"

    document = json.loads(command("board", "--write", "--format", "json").out)
    assert [(row["rank"], row["run"]) for table in document for row in table["rows"]] == expected
    terminal = re.findall(r"^ +(\d+)  author-.*  ([0-9a-f]{16})$", command("board").out, re.MULTILINE)
    assert [(int(place), run) for place, run in terminal] == expected
    assert in_markdown((competition / "leaderboard/BOARD.md").read_text()) == expected
    pages = [competition / f"leaderboard/boards/{slug}.md" for slug in ("gelu", "softmax")]
    assert [standing for page in pages for standing in in_markdown(page.read_text())] == expected
    assert command("export", "--out", "out").code == 0
    rows = [json.loads(line) for line in (competition / "out/verdicts.jsonl").read_text().splitlines()]
    assert sorted((row["rank"], row["run"]) for row in rows if row["rank"] is not None) == sorted(expected)
