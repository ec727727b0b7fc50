"""The exported tables: the same rows in both formats, by the published schema, ranked like the board."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import jsonschema
import pyarrow.parquet as pq
import pytest

from harness.errors import LedgerError
from leaderboard.publishing.export import export
from leaderboard.record.entry import encode
from leaderboard.record.moderation import Moderation
from leaderboard.record.teams import Teams
from tests.ranked import rank
from tests.unit.conftest import Command
from tests.verdicts import EPOCH, REPLAYED, accepted, chained, failed

VERDICTS = [
    accepted(author="ada", run="a" * 16, score_ns=1000),
    accepted(author="ada", run="b" * 16, score_ns=900, created_at=EPOCH + timedelta(hours=1), source="faster"),
    accepted(author="bob", run="c" * 16, score_ns=5000, modes=("calls",)),
    accepted(author="eve", run="d" * 16, score_ns=10),
    failed(author="mal", name='<script>"x', run="e" * 16, message="a\nb\x00,|"),
    accepted(author="fay", run="f" * 16, score_ns=700, modes=REPLAYED),
    accepted(author="gil", run="9" * 16, score_ns=600, ranked_timing="replayed"),
]  # fmt: skip
OUT = Moderation(run="d" * 16, action="disqualify", actor="grace", reason="why", created_at=EPOCH)


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.fixture
def exported(tmp_path: Path) -> Path:
    found, teams = chained(*VERDICTS, OUT), Teams({"quickfix": ("ada", "bob")})
    assert export(found, rank(found), tmp_path, teams) == (7, 6 * 4 + 5 * 4 + 1 + 2)
    return tmp_path


def test_ranks_are_those_of_the_board_and_a_verdict_names_the_team_of_its_author(exported: Path) -> None:
    tables = rank(chained(*VERDICTS, OUT))
    rows = lines(exported / "verdicts.jsonl")
    ranks = dict.fromkeys(row["run"] for row in rows) | {row.run: row.rank for table in tables for row in table.rows}
    assert {row["run"]: row["rank"] for row in rows} == ranks
    states = {"b": "ranks", "c": "ranks", "d": "disqualified", "f": "ranks", "9": "not_replayed"}
    assert [(row["run"], row["state"]) for row in rows] == [
        (verdict.run, states.get(verdict.run[0])) for verdict in VERDICTS
    ]
    assert {row["author"] for row in rows if row["team"] == "quickfix"} == {"ada", "bob"}
    assert {row["author"] for row in rows if row["team"] is None} == {"eve", "mal", "fay", "gil"}


@pytest.mark.parametrize("kind", ["verdicts", "cases"])
def test_both_formats_hold_the_same_rows_by_the_schema(exported: Path, kind: str) -> None:
    rows = lines(exported / f"{kind}.jsonl")
    table = pq.read_table(exported / f"{kind}.parquet")
    schema = json.loads((exported / "schema.json").read_text())[kind]
    assert table.schema.names == list(schema["properties"])
    for column, row in zip(table.to_pylist(), rows, strict=True):
        jsonschema.validate(row, schema)
        moment = column.pop("created_at", None)
        if moment is not None:
            assert moment.isoformat().replace("+00:00", "Z") == row.pop("created_at")
        assert column == row


def test_cases_say_what_their_verdict_says(exported: Path) -> None:
    rows = [row for row in lines(exported / "cases.jsonl") if row["run"] == "c" * 16]
    assert [row["stage"] for row in rows] == ["test"] * 4 + ["benchmark"]
    timed = rows[-1]
    benchmark = VERDICTS[2].benchmarks[0]
    assert (timed["median_ns"], timed["mode"], timed["rounds"]) == (5000, "calls", 8)
    assert (timed["overhead_ns"], timed["overhead_error_ns"]) == (benchmark.overhead_ns, benchmark.overhead_error_ns)
    assert rows[0]["median_ns"] is None


def test_a_replayed_case_has_nulls_for_rounds(exported: Path) -> None:
    verdicts = pq.read_table(exported / "verdicts.parquet").to_pylist()
    timing = {row["run"][0]: (row["timing"], row["ranked_timing"]) for row in verdicts}
    rounds = dict.fromkeys("abcde", ("calls", "calls"))
    assert timing == {**rounds, "f": ("replayed", "replayed"), "9": ("calls", "replayed")}
    rows = [row for row in pq.read_table(exported / "cases.parquet").to_pylist() if row["stage"] == "benchmark"]
    columns = ("mode", "median_ns", "rounds", "stop_reason")
    clocks = ("overhead_ns", "overhead_error_ns")
    replayed = [row for row in rows if row["run"] == "f" * 16]
    assert [[row[name] for name in columns] for row in replayed] == [["replayed", 700, 40, "converged"]] * 4
    assert {row[name] for row in replayed for name in clocks} == {None}
    assert None not in {row[name] for row in rows if row["run"] != "f" * 16 for name in clocks}


def test_a_failed_export_leaves_the_old_one(exported: Path) -> None:
    before = {path.name: path.read_bytes() for path in exported.iterdir()}
    bad = [*chained(*VERDICTS, OUT), encode(None, b'{"schema_version":7}')[0]]
    with pytest.raises(LedgerError):
        export(bad, [], exported)
    assert {path.name: path.read_bytes() for path in exported.iterdir()} == before


def test_the_command_and_the_documented_columns(command: Command, competition: Path) -> None:
    result = command("export", "--out", "tables")
    assert (result.code, result.out) == (0, "0 verdicts and 0 cases in tables\n")
    assert pq.read_table(competition / "tables/verdicts.parquet").num_rows == 0
    assert command("export", "nothing", "--out", "tables").code == 2


@pytest.mark.parametrize("flag", [("--force",), ("--case", "a million"), ("--leaderboard", "rows"), ("--gpu", "H100")])
def test_the_record_takes_no_option_of_a_kernel(flag: tuple[str, ...], command: Command, competition: Path) -> None:
    result = command("export", "--out", "tables", *flag)
    assert result.code == 2
    assert f"{flag[0]} is for a kernel" in result.err
    assert not (competition / "tables").exists()
