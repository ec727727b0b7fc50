"""Measures large ledgers: `python -m benchmarks.ledger_scale` records in, ranks and publishes 1,000 and 100,000 lines.

Prints its figures and writes them to `benchmarks/results/ledger_scale.json`; exits with 1 if one exceeds its limit.
The fastest repetition counts: the others were slowed by other work on the machine, and so the processor time is
measured, too.
"""

from __future__ import annotations

import os
import random
import sys
import tempfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import perf_counter, process_time

from benchmarks.scratch import report
from harness.submission import Submission
from harness.verdict import Outcome, Verdict
from kernelmark.project.settings import Settings
from kernelmark.record.recording import record
from leaderboard.publishing.site.build import build
from leaderboard.publishing.site.inputs import SiteInputs
from leaderboard.record.current import Current
from leaderboard.record.entry import Entry, encode
from leaderboard.record.index import Index
from leaderboard.record.ledger import JsonlLedger
from leaderboard.standings.ranking import rank
from tests.verdicts import EPOCH, accepted, failed, interval

LINES = (1_000, 100_000)
AUTHORS = 2_000
REPETITIONS = 3
RESULT = Path(__file__).parent / "results" / "ledger_scale.json"
# Seconds: limits for any number of lines, and those for 100,000.
BARS = {"record_s": 0.02, "rank_s": 1.0, "find_s": 0.005, "site_s": 15.0, "site_after_one_line_s": 0.5}


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
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        for verdict in verdicts(lines):
            last, line = encode(last, verdict.to_json().encode())
            file.write(line)
        file.flush()
        os.fsync(file.fileno())  # otherwise the append that is measured would pay for it


def measured(name: str, call: Callable[[], object], repetitions: int = 1) -> dict[str, float]:
    """The wall-clock and the processor time of the fastest repetition, in seconds."""
    walls, cpus = [], []
    for _ in range(repetitions):
        wall, cpu = perf_counter(), process_time()
        call()
        walls.append(round(perf_counter() - wall, 4))
        cpus.append(round(process_time() - cpu, 4))
    return {f"{name}_s": min(walls), f"{name}_cpu_s": min(cpus)}


def measure(root: Path, lines: int) -> dict[str, float | int]:
    """The figures of a project in a folder, with a ledger of so many lines; each reader begins without what another one
    has read.
    """
    (root / "kernelmark.toml").touch()
    settings, run = Settings.load(root), f"{lines // 2:016x}"
    path, file = settings.locate("results") / "softmax.jsonl", root / ".kernelmark/index.sqlite"
    write(path, lines)
    first = measured("index", lambda: JsonlLedger(path, Index(file)).facts())
    model = accepted()
    current = Current(problems={model.problem.slug: model.problem.sha256}, protocol=model.protocol)
    submission = Submission.of("# ada\n", "py", author="ada", name="kernel.py")
    named = model.submission.model_copy(update={"sha256": submission.sha256, "author": "ada"})
    runs = iter(range(1, 1000))

    def recorded() -> None:
        late = accepted(run=f"{next(runs):x}".rjust(16, "f")).model_copy(update={"submission": named})
        record(settings, submission, late)

    def built() -> None:
        index = Index(file)
        inputs = SiteInputs((path,), settings.locate("archive"), "archive", datetime.now(UTC), current, index=index)
        build(inputs, root / "site", root / "site.cache")

    figures = {
        "lines": lines,
        "bytes": path.stat().st_size,
        **first,
        **measured("rank", lambda: rank(JsonlLedger(path, Index(file))), REPETITIONS),
        **measured("rank_with_stale_marks", lambda: rank(JsonlLedger(path, Index(file)), current), REPETITIONS),
        **measured("find", lambda: JsonlLedger(path, Index(file)).find(run), REPETITIONS),
        **measured("record", recorded, REPETITIONS),
        **measured("verify", JsonlLedger(path).verify),
        **measured("site", built),
    }
    recorded()
    return {**figures, **measured("site_after_one_line", built), "index_bytes": file.stat().st_size}


def main() -> int:
    figures = []
    for lines in LINES:
        with tempfile.TemporaryDirectory() as directory:
            figures.append(measure(Path(directory), lines))
    what = "recording in, ranking, searching and publishing ledgers"
    report("ledger_scale", what, RESULT, {"ledgers": figures, "bars": BARS})
    return 0 if all(figure[name] <= bar for figure in figures for name, bar in BARS.items()) else 1


if __name__ == "__main__":
    sys.exit(main())
