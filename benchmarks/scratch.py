"""A temporary project to grade in, with `submit` run as a user would run it; `load` and `faults` use it.

Temporary files of the gradings are in the project too, so that leftovers can be distinguished from the files of other
processes on the machine.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import torch

from harness.device.cpu import cpu_name
from kernelmark.diagnostics.selftest import HERE, PROBLEMS
from leaderboard.record.ledger import JsonlLedger
from tests.leftovers import Found, leftovers, new

ROOT = Path(__file__).resolve().parent.parent
PROBLEM = PROBLEMS / "double"
HONEST = HERE / "honest" / "torch_mul" / "submission.py"


class Graded(NamedTuple):
    """How one `submit` ended; `run` is empty if no verdict was acknowledged."""

    status: int
    run: str
    outcome: str
    errors: str
    seconds: float


@contextmanager
def project() -> Iterator[Path]:
    """A folder with settings and the problem, removed afterwards. This process has its temporary files there, too.

    A problem elsewhere would be graded with the settings of the project that it is in.
    """
    with tempfile.TemporaryDirectory(prefix="scratch-") as folder:
        root, before = Path(folder), os.environ.get("TMPDIR")
        (root / "tmp").mkdir()
        shutil.copytree(PROBLEM, root / "problems" / PROBLEM.name)
        (root / "kernelmark.toml").write_text('effort = "quick"\nbaselines = ["none"]\ndevice = "cpu"\n')
        os.environ["TMPDIR"] = str(root / "tmp")
        tempfile.tempdir = None
        try:
            yield root
        finally:
            if before is None:
                del os.environ["TMPDIR"]
            else:
                os.environ["TMPDIR"] = before
            tempfile.tempdir = None


def start(
    root: Path, source: Path, *, author: str = "bench", sandbox: str = "bwrap", host: str = ""
) -> subprocess.Popen[str]:
    """Start a grading; `host` is the address of the Docker daemon, if not the default."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **({"DOCKER_HOST": host} if host else {})}
    code = "from kernelmark.commands.scripts import submit; submit()"
    command = [sys.executable, "-c", code, PROBLEM.name, str(source), "--format", "json", "--author", author]
    return subprocess.Popen(
        [*command, "--sandbox", sandbox], cwd=root, env=environment, text=True, errors="replace",
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def end(child: subprocess.Popen[str], started: float) -> Graded:
    """Wait for the grading, and read the verdict that it acknowledged."""
    output, errors = child.communicate(timeout=600)
    try:
        verdict = json.loads(output)
    except ValueError:
        verdict = {}
    acknowledged = child.returncode in range(7) and "run" in verdict
    outcome = {2: "usage", 7: "harness_error"}.get(child.returncode, verdict.get("outcome", "none"))
    seconds = time.monotonic() - started
    return Graded(child.returncode, verdict["run"] if acknowledged else "", outcome, errors[-1000:], round(seconds, 2))


def submit(root: Path, source: Path = HONEST, **options: str) -> Graded:
    started = time.monotonic()
    return end(start(root, source, **options), started)


def ledger(root: Path) -> JsonlLedger:
    return JsonlLedger(root / "leaderboard" / "results" / f"{PROBLEM.name}.jsonl")


def recorded(book: JsonlLedger) -> list[str]:
    """The runs in a ledger; checks its chain."""
    assert book.verify() == sum(1 for _ in book.read())
    return [entry.verdict.run for entry in book.read()]


def left_behind(before: Found, seconds: float = 20.0) -> Found:
    """What exists now, did not exist before, and still exists after so many seconds."""
    deadline, found = time.monotonic() + seconds, new(before, leftovers())
    while found and time.monotonic() < deadline:
        time.sleep(0.2)
        now = leftovers()
        found = {kind: kept for kind, items in found.items() if (kept := [item for item in items if item in now[kind]])}
    return found


def report(module: str, what: str, out: Path, figures: dict[str, Any]) -> None:
    """Print a result and write it to `out`, with the machine and the command."""
    document = {
        "what": what,
        "command": " ".join([f"python -m benchmarks.{module}", *sys.argv[1:]]),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "device": cpu_name(),
        "cpus": os.cpu_count(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "load_average": os.getloadavg()[0],
        **figures,
    }
    text = json.dumps(document, indent=1, ensure_ascii=True)
    print(text)
    out.write_text(text + "\n")
