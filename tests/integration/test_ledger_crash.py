"""The ledger under many writers and under SIGKILL: what was acknowledged is there, and the chain holds."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import pytest

from leaderboard.record.entry import decode
from leaderboard.record.ledger import JsonlLedger
from tests.verdicts import accepted

ROOT = Path(__file__).parents[2]
IMPORTS = """
import os, sys
from pathlib import Path
from leaderboard.record.ledger import JsonlLedger
from tests.verdicts import accepted
ledger, writer = JsonlLedger(Path(sys.argv[1])), int(sys.argv[2])
"""
# The run is printed after `append` returned: a line of output is an acknowledgement.
APPEND = """
print("ready", flush=True)
sys.stdin.readline()
base = accepted(author=f"writer-{writer}", log="x" * int(sys.argv[4]))
for number in range(int(sys.argv[3])):
    run = f"{writer:08x}{number:08x}"
    ledger.append(base.model_copy(update={"run": run}))
    print(run, flush=True)
"""
DIE_WITHIN_A_WRITE = """
write = os.write
def half(descriptor, data):
    write(descriptor, data[: len(data) // 2])
    os.kill(os.getpid(), 9)
os.write = half
ledger.append(accepted(run="f" * 16))
"""


def start(code: str, ledger: Path, *arguments: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", IMPORTS + code, str(ledger), *map(str, arguments)]
    return subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def released(*children: subprocess.Popen[str]) -> None:
    """Let them append, once all of them are ready."""
    assert [child.stdout.readline() for child in children if child.stdout] == ["ready\n"] * len(children)
    for child in children:
        assert child.stdin is not None
        child.stdin.write("\n")
        child.stdin.flush()


def acknowledged(child: subprocess.Popen[str]) -> list[str]:
    """The runs that it printed whole, until it ended."""
    output, _ = child.communicate(timeout=120)
    return [line.strip() for line in output.splitlines(keepends=True) if line.endswith("\n")]


def test_eight_writers_append_sixteen_hundred_verdicts_beside_a_reader(tmp_path):
    path = tmp_path / "softmax.jsonl"
    children = [start(APPEND, path, writer, 200, 0) for writer in range(8)]
    last, *others = children
    released(*others)
    seen = [0]
    while any(child.poll() is None for child in children):
        seen.append(JsonlLedger(path).verify())
        if last is not None and seen[-1] > 0:  # so it has read before all was written
            released(last)
            last = None
        time.sleep(0.02)
    assert seen == sorted(seen)
    printed = [run for child in children for run in acknowledged(child)]
    assert [child.returncode for child in children] == [0] * 8

    runs = [entry.verdict.run for entry in JsonlLedger(path).read()]
    assert len(runs) == path.read_bytes().count(b"\n") == 1600
    assert sorted(runs) == sorted(printed) == [f"{w:08x}{n:08x}" for w in range(8) for n in range(200)]
    assert JsonlLedger(path).verify() == 1600
    assert not JsonlLedger(path).torn_path.exists()
    writers = [run[:8] for run in runs]
    assert sum(a != b for a, b in pairwise(writers)) >= 8, "they did write at the same time"
    for writer in range(8):
        own = [run for run in runs if run.startswith(f"{writer:08x}")]
        assert own == sorted(own), "each writer's verdicts stand in the order in which it gave them"


@pytest.mark.parametrize("kills", [10, pytest.param(30, marks=pytest.mark.full)])
def test_killed_while_appending_nothing_acknowledged_is_lost(tmp_path, kills):
    """Lines of a megabyte, so that a good part of the kills falls into a write or an fsync."""
    ledger = JsonlLedger(tmp_path / "softmax.jsonl")
    draw = random.Random(kills)
    promised: set[str] = set()
    for writer in range(kills):
        child = start(APPEND, ledger.path, writer, 1_000_000, 1_000_000)
        released(child)
        first = child.stdout.readline().strip()
        time.sleep(draw.uniform(0, 0.03))
        os.kill(child.pid, signal.SIGKILL)
        promised |= {first, *acknowledged(child)}
        assert child.returncode == -signal.SIGKILL

        recorded = [decode_run(entry.document) for entry in ledger.read()]
        assert promised <= set(recorded), "an acknowledged verdict is in the ledger"
        assert len(recorded) == len(set(recorded)) <= len(promised) + writer + 1, "a kill leaves one unacknowledged"
    final = ledger.append(accepted(run="e" * 16))
    assert ledger.verify() == final.seq >= len(promised) + 1


def decode_run(document: bytes) -> str:
    place = document.rindex(b'"run":"') + 7
    return document[place : place + 16].decode()


def test_killed_within_a_write_the_torn_line_is_set_aside_by_the_next_writer(tmp_path):
    ledger = JsonlLedger(tmp_path / "softmax.jsonl")
    first = ledger.append(accepted())
    before = ledger.path.read_bytes()
    for _ in range(2):
        child = start(DIE_WITHIN_A_WRITE, ledger.path, 0)
        child.communicate(timeout=60)
        assert child.returncode == -signal.SIGKILL
    torn = ledger.path.read_bytes()[len(before) :]
    assert len(torn) > 1000
    assert b"\n" not in torn
    assert list(ledger.read()) == [first]

    second = ledger.append(accepted())
    (warning,) = second.warnings
    assert f"{len(torn)} bytes of an unfinished last line were moved to softmax.jsonl.torn" in warning
    assert [entry.hash for entry in ledger.read()] == [first.hash, second.hash]
    aside = ledger.torn_path.read_bytes().splitlines()
    assert len(aside) == 2, "the second writer had set aside what the first left"
    assert aside[1] == torn
    with pytest.raises(ValueError, match="is not a ledger line"):
        decode(torn)
