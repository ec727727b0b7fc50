"""The survey of foreign references: it goes on where it stopped, and stops in time."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks import foreign_survey
from benchmarks.foreign_survey import Late, share, survey, table

WANTED = [("kernelbench", f"1/{number}", Path("checkout")) for number in range(1, 6)]
ONE = {"outcome": "accepted", "speedup": [1.0, 0.98, 1.02], "holds_one": True}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> tuple[list[str], Callable[[dict[str, Any]], None]]:
    """The names that are graded, and what sets the results; an exception is raised."""
    names: list[str] = []
    results: dict[str, Any] = {}

    def one(form: str, name: str, *_: object) -> Any:
        names.append(name)
        if isinstance(result := results.get(name, ONE), Exception):
            raise result
        return result

    monkeypatch.setattr(foreign_survey, "_one", one)
    return names, results.update


def called(rows: dict[str, Any], left_out: dict[str, str], write: Callable[[], None] = lambda: None) -> None:
    survey(WANTED, rows, left_out, Path(), effort="quick", seconds=60.0, write=write)


def test_a_second_call_goes_on(asked: Any) -> None:
    names, set_results = asked
    rows, left_out, written = dict[str, Any](), dict[str, str](), list[int]()
    set_results({"1/2": "it imports 'einops'", "1/4": Late()})
    called(rows, left_out, lambda: written.append(len(rows) + len(left_out)))
    assert sorted(rows) == ["kernelbench 1/1", "kernelbench 1/3"]
    assert left_out == {"kernelbench 1/2": "it imports 'einops'"}
    assert written == [1, 2, 3]  # as they come
    assert names == ["1/1", "1/2", "1/3", "1/4"]
    names.clear()
    set_results({"1/4": ONE})
    called(rows, left_out)
    assert names == ["1/4", "1/5"]
    assert len(rows) == 4


def test_a_problem_that_takes_a_whole_call_is_not_tried_for_ever(asked: Any) -> None:
    _, set_results = asked
    rows = dict[str, Any]()
    set_results({"1/1": Late()})
    called(rows, {})
    assert rows["kernelbench 1/1"] == {"outcome": "not done within 60 s"}
    assert len(rows) == 5


def test_the_table_names_unexpected_results() -> None:
    slower = {"outcome": "accepted", "speedup": [0.9, 0.85, 0.95], "holds_one": False}
    lines = [*table({"kernelbench 1/1": ONE, "kernelbench 1/2": slower}, {"kernelbench 4/1": "no transformers"})]
    assert [line.split()[-4:] for line in lines[1:3]] == [["2", "2", "2", "1"], ["1", "0", "0", "0"]]
    parts = [share(range(10), f"{part}/3") for part in (1, 2, 3)]
    assert sorted(number for part in parts for number in part) == [*range(10)]
    assert lines[3:] == [
        "kernelbench 1/2: accepted; 0.900 [0.850, 0.950] without 1.00",
        "kernelbench 4/1: left out: no transformers",
    ]


def test_a_command_that_does_not_end_is_ended(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = "import pathlib, signal, sys, time\n"
    program += "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # who runs the tests may ignore it
    program += "try:\n    time.sleep(600)\nexcept KeyboardInterrupt:\n    "
    program += "pathlib.Path(sys.argv[1]).write_text('closed')"
    monkeypatch.setattr(foreign_survey, "_COMMAND", (sys.executable, "-c", program))
    monkeypatch.setattr(foreign_survey, "_LEAST_S", 0.0)
    left_s = foreign_survey._ENDING_S + 3.0
    with pytest.raises(Late):
        foreign_survey._run([str(tmp_path / "told")], {}, foreign_survey.time.monotonic() + left_s)
    assert (tmp_path / "told").read_text() == "closed"


def test_a_row_says_whether_the_interval_holds_one() -> None:
    ratio = {"median": 1.02, "low": 1.01, "high": 1.05, "confidence": 0.95}
    verdict = {"outcome": "accepted", "timing": "calls", "speedups": [{"baseline": "eager", "ratio": ratio}]}
    row = foreign_survey._row(json.dumps({**verdict, "doubts": [{"code": "drift", "text": "x"}]}), "", 0)
    assert (row["holds_one"], row["speedup"], row["doubts"]) == (False, [1.02, 1.01, 1.05], ["drift"])
    ratio["low"] = 0.99
    assert foreign_survey._row(json.dumps({**verdict, "doubts": []}), "", 0)["holds_one"]
    failure = foreign_survey._row("", "a\nkernelmark: error: what", 7)
    assert failure == {"outcome": "error", "message": "kernelmark: error: what"}
