"""The project that version 0.1.0 wrote, under `tests/data`: a copy to work in, and what is known of its record."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from leaderboard.record.ledger import JsonlLedger

DATA = Path(__file__).resolve().parent / "data"
RANKS_SINCE = {"45b4b4ae9f640415": 3}
"""The ranks that a later decision changed, by run: 0013, since this one and its leader ran on two cards, 2 % apart."""
_KEY = ("problem", "problem_sha256", "protocol", "timing", "device_name", "isolated", "interpreted")


def standings(problem: str | None = None) -> list[dict[str, Any]]:
    """What 0.1.0 ranked, of one problem or of all, in the form of `reduced`, but for `RANKS_SINCE`."""
    tables: list[dict[str, Any]] = json.loads((DATA / "standings-0.1.0.json").read_bytes())
    for row in (row for table in tables for row in table["rows"]):
        row["rank"] = RANKS_SINCE.get(row["run"], row["rank"])
    return [table for table in tables if problem in (None, table["problem"])]


def copied(folder: Path) -> Path:
    """Copy the project into a folder, and its private cases next to it; returns the project's folder."""
    shutil.copytree(DATA / "project-0.1.0", folder / "project")
    shutil.copytree(DATA / "private-cases-0.1.0", folder / "private")
    (folder / "private").chmod(0o700)
    return folder / "project"


def ledgers(project: Path) -> list[JsonlLedger]:
    return [JsonlLedger(path) for path in sorted((project / "leaderboard" / "results").glob("*.jsonl"))]


def reduced(tables: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The tables as `kernelmark board --format json` prints them, without what may change while a record stays as it
    is: which rows are stale, and what later versions say besides."""
    return [
        {
            **{key: table["key"][key] for key in _KEY},
            "private_cases": (table["private"] or {}).get("cases"),
            "rows": [
                {
                    "rank": row["rank"],
                    "who": _who(row),
                    "run": row["run"],
                    "file": row["submission"],
                    "gradings": row["gradings"],
                    "ns": [row["score"][end] for end in ("low_ns", "median_ns", "high_ns")],
                    "modes": row["modes"],
                    "speedups": {
                        speedup["baseline"]: [speedup["ratio"][end] for end in ("low", "median", "high")]
                        for speedup in row["speedups"]
                    },
                    "said": _said(row),
                }
                for row in table["rows"]
            ],
            "set_aside": [
                {
                    "state": row["state"],
                    "who": _who(row),
                    "run": row["run"],
                    "ns": row["score"]["median_ns"],
                    "said": _said(row),
                }
                for row in table["set_aside"]
            ],
        }
        for table in tables
    ]


def _who(row: Mapping[str, Any]) -> str:
    team = row["team"]
    return row["author"] if team is None else f"{team['name']} ({row['author']})"


def _said(row: Mapping[str, Any]) -> list[str]:
    return [f"{event['action']}: {event['reason']}" for event in row["moderation"]]
