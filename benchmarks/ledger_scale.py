"""Measures a large ledger: `python -m benchmarks.ledger_scale` ranks 100,000 synthetic verdicts.

Prints its figures and writes them to `benchmarks/results/ledger_scale.json`; exits with 1 if ranking exceeds its limit.
The fastest repetition counts: the others were slowed by other work on the machine.
"""

from __future__ import annotations

import json
import os
import platform
import random
import sys
import tempfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import perf_counter, process_time

from harness.device.cpu import cpu_name
from harness.verdict import Outcome, Verdict
from leaderboard.record.current import Current
from leaderboard.record.entry import Entry, encode
from leaderboard.record.ledger import JsonlLedger
from leaderboard.standings.ranking import rank
from tests.verdicts import EPOCH, accepted, failed, interval

LINES = 100_000
AUTHORS = 2_000
BAR_S = 5.0
REPETITIONS = 3
RESULT = Path(__file__).parent / "results" / "ledger_scale.json"


def verdicts(lines: int) -> Iterator[Verdict]:
    """Synthetic verdicts: most accepted, on three devices, and some without a sandbox."""
    draw = random.Random(1)
    models = [accepted(device_name=name, sandbox="docker") for name in ("NVIDIA H200", "NVIDIA B200", "NVIDIA L4")] * 3
    models += [accepted(sandbox="process"), failed(), failed(Outcome.COMPILE_ERROR)]
    for index in range(lines):
        model = draw.choice(models)
        author = f"author-{draw.randrange(AUTHORS)}"
        changes = {
            "run": f"{index:016x}",
            "created_at": EPOCH + timedelta(seconds=index),
            "submission": model.submission.model_copy(update={"author": author}),
        }
        if model.score is not None:
            changes["score"] = interval(int(draw.lognormvariate(11, 0.2)))
        yield model.model_copy(update=changes)


def write(path: Path, lines: int) -> None:
    """The lines that `append` would write, without an fsync for each."""
    last: Entry | None = None
    with path.open("wb") as file:
        for verdict in verdicts(lines):
            last, line = encode(last, verdict.to_json().encode())
            file.write(line)
        file.flush()
        os.fsync(file.fileno())  # otherwise the append that is measured would pay for it


def seconds(call: Callable[[], object], clock: Callable[[], float] = perf_counter) -> float:
    start = clock()
    call()
    return round(clock() - start, 4)


def measure(directory: Path) -> dict[str, object]:
    ledger = JsonlLedger(directory / "softmax.jsonl")
    write(ledger.path, LINES)
    size_bytes = ledger.path.stat().st_size
    tables = rank(ledger.read())
    model = accepted()
    current = Current(problems={model.problem.slug: model.problem.sha256}, protocol=model.protocol)
    late = accepted(run="f" * 16)
    return {
        "what": "ranking, verifying and appending to a large ledger",
        "command": "python -m benchmarks.ledger_scale",
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "device": cpu_name(),
        "lines": LINES,
        "bytes": size_bytes,
        "bytes_per_line": size_bytes // LINES,
        "tables": len(tables),
        "rows": sum(len(table.rows) for table in tables),
        "rank_s": min(seconds(lambda: rank(ledger.read())) for _ in range(REPETITIONS)),
        "rank_cpu_s": min(seconds(lambda: rank(ledger.read()), process_time) for _ in range(REPETITIONS)),
        "rank_with_stale_marks_s": min(seconds(lambda: rank(ledger.read(), current)) for _ in range(REPETITIONS)),
        "rank_bar_s": BAR_S,
        "verify_s": seconds(ledger.verify),
        "get_s": seconds(lambda: ledger.get(f"{LINES // 2:016x}")),
        "append_s": seconds(lambda: ledger.append(late)),
        "load_average": os.getloadavg()[0],
        "cpus": os.cpu_count(),
        "python": platform.python_version(),
    }


def main() -> int:
    with tempfile.TemporaryDirectory() as directory:
        result = measure(Path(directory))
    text = json.dumps(result, indent=2)
    print(text)
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(text + "\n")
    return 0 if max(float(str(result[key])) for key in ("rank_s", "rank_with_stale_marks_s")) < BAR_S else 1


if __name__ == "__main__":
    sys.exit(main())
