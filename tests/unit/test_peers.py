"""The benchmark of other evaluators: what its page says of the times that they reported, and how a run resumes."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.peers import __main__ as peers
from benchmarks.peers import table
from benchmarks.peers.evaluators import EVALUATORS, SIZES
from benchmarks.peers.kernels import REPORTED, SOURCES


def entry(
    long: float, error: float | None = None, ratio: list[float] | None = None, right: bool = True
) -> dict[str, Any]:
    errors = {} if error is None else {"short": error, "long": error}
    row = {"right": right, "us": {"short": 2.0, "long": long}, "error_us": errors, "said": "", "seconds": 3.0}
    return row if ratio is None else row | {"ratio": {"short": ratio, "long": ratio}}


def peer(*runs: tuple[dict[str, Any], dict[str, Any]], **cheats: dict[str, Any]) -> dict[str, Any]:
    every = [{"told": {"add": add, "slower": slower}} for add, slower in runs]
    return {"alone": every[0], "processes": every[1:], "cheats": cheats}


@pytest.mark.parametrize(
    ("one", "row"),
    [
        # 1.96 × √(1 + 1) = 2.77
        (
            peer((entry(100, 1.0), entry(102, 1.0)), (entry(103, 1.0), entry(107, 1.0))),
            ["1 of 1", "1 of 2"],
        ),
        (peer((entry(100), entry(99)), (entry(103), entry(107))), ["no error", "no error"]),
        (
            peer(
                (entry(100, ratio=[0.99, 1.01]), entry(101, ratio=[0.98, 0.995])),
                (entry(100, ratio=[1.001, 1.01]), entry(101, ratio=[0.98, 1.005])),
            ),
            ["1 of 2", "1 of 2"],
        ),
    ],
)
def test_pairs_are_distinguished_by_the_reported_errors(one: dict[str, Any], row: list[str]) -> None:
    assert table.pairs(one)[:2] == row


def test_the_slower_one_is_counted_whatever_the_error() -> None:
    one = peer((entry(100), entry(99)), (entry(103), entry(107)), (entry(103), entry(107)))
    assert table.pairs(one)[2:] == ["1.46 %", "2 of 3"]  # 2.91 and 0.00 % apart


def test_bias_and_spread_are_of_all_processes() -> None:
    one = peer((entry(100), entry(101)), (entry(104), entry(101)), (entry(103), entry(101)))
    truth = {
        "dirty": {"short": [1.0, 3.0, 1.5], "long": [100.0, 101.0, 99.0]},
        "clean": {"short": [2.0], "long": [90.0]},
    }
    assert table.times("KernelBench", one, truth, several=True) == [
        "dirty", "3.0", "3.0", "+0.50 µs (+33.3 %)", "+3.00 µs (+3.0 %)", "3.88 %", "3",
    ]  # fmt: skip
    # against the state that it leaves, and against none if that was not measured
    assert table.times("kernelmark", one, truth, several=False)[3:] == ["+0.00 µs (+0.0 %)", "+13.00 µs (+14.4 %)"]
    assert table.times("do_bench_cudagraph", one, truth, several=False)[3:] == ["–", "–"]


@pytest.mark.parametrize(
    ("row", "mark"),
    [
        (entry(40), "**40%**"),
        (entry(60), "no gain"),
        (entry(40, right=False), "–"),
        ({"right": False, "us": {}, "said": "status 1"}, "–"),
    ],
)
def test_a_cheat_is_believed_if_it_is_right_and_gains(row: dict[str, Any], mark: str) -> None:
    one = peer((entry(100), entry(101)), stale_output=row)
    assert table.mark(one, "stale_output") == mark
    assert table.believed(one, "stale_output") == (mark == "**40%**")
    assert table.mark(one, "by_shape") == "not run"


def test_refusals_count_only_where_the_honest_kernel_is_taken(bench: peers.Bench) -> None:
    stages(bench)
    bench.found["peers"]["gpu-mode"]["alone"]["told"]["add"] |= {"right": False, "said": "illegal memory access"}
    text = table.page(bench.found)
    assert "- **gpu-mode** (f83c) did not run: `['illegal memory access']`." in text
    assert "gpu-mode |" not in text


def test_a_narrower_result_is_believed_if_it_is_called_right() -> None:
    assert table.believed(peer((entry(100), entry(101)), downcast=entry(95)), "downcast")
    assert not table.believed(peer((entry(100), entry(101)), downcast=entry(50, right=False)), "downcast")


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> peers.Bench:
    """A run whose processes tell 100 and 101 µs; nvbench ends without a word."""
    child = """
import json, pathlib, sys, time
name, folder, *wanted = sys.argv[1:]
if name == "nvbench":
    sys.exit("no libcuda")
def row(each):
    us = {"short": 2.0, "long": 101.0 if each == "slower" else 100.0}
    us = {"dirty": us, "own": us} if name == "CUPTI" else us
    return {"right": True, "us": us, "error_us": {}, "at": time.time(), "calls": 150}
pathlib.Path(folder, "told").write_text("\\n".join(json.dumps(row(each)) for each in wanted))
"""
    popen = subprocess.Popen

    def start(command: list[str], **options: Any) -> subprocess.Popen[bytes]:
        return popen([sys.executable, "-c", child, *command[3:]], **options)

    monkeypatch.setattr(subprocess, "Popen", start)
    monkeypatch.setattr(peers, "PROCESSES", 2)
    (tmp_path / "page.md").touch()
    given = argparse.Namespace(only=list(EVALUATORS), pack=tmp_path, scratch=tmp_path / "scratch", seconds=100.0)
    found: dict[str, Any] = {
        "peers": {},
        "dates": ["2026-11-27T12:00"],
        "versions": {"nvbench": "0.3.0", "gpu-mode": "f83c"},
    }
    found |= {"device_name": "a card", "driver": "1", "torch": "2"}
    return peers.Bench(given, tmp_path / "out.json", found)


def stages(bench: peers.Bench) -> None:
    for stage in (bench.reference, bench.verdicts, bench.cheats, bench.processes):
        stage()


def test_a_run_is_kept_as_it_goes_and_one_that_fails_is_named(bench: peers.Bench) -> None:
    stages(bench)
    kept = json.loads(bench.out.read_text())
    assert kept == bench.found
    assert kept["peers"].keys() == EVALUATORS.keys()
    for name, each in kept["peers"].items():
        assert ("failed" in each["alone"]) == (name == "nvbench")
        assert (each["cheats"].keys() == REPORTED.keys()) == (name != "nvbench")
        assert len(each["processes"]) == (0 if name == "nvbench" else 2)
    text = table.page(kept)
    assert "- **nvbench** (0.3.0) did not run: `status 1: no libcuda`." in text
    assert "| own | 2.00 ± 0.00 µs | 100.00 ± 0.00 µs |" in text
    assert "450 calls a size in 3" in text
    assert "## Equal and slower kernels" in text
    for each in kept["peers"].values():
        each["processes"] = []
    assert "## Equal and slower kernels" not in table.page(kept)  # no pair was measured
    kept["peers"] = bench.found["peers"]
    before = bench.out.read_text()
    stages(bench)  # nothing is left to do
    assert bench.out.read_text() == before


def test_nothing_begins_when_the_time_is_up(bench: peers.Bench) -> None:
    bench.until = 0.0
    stages(bench)
    assert not bench.out.exists()
    assert bench.found["peers"] == {}


def test_every_source_compiles_and_each_is_another() -> None:
    assert SOURCES.keys() == {"add", "slower", *REPORTED}
    for name, source in SOURCES.items():
        compile(source, name, "exec")
    assert len(set(SOURCES.values())) == len(SOURCES)
    assert list(SIZES) == ["short", "long"]
