"""Builds the demo site from what H200s graded, under `benchmarks/results`: `make demo`, or `python -m benchmarks.demo`.

Nothing is graded here: the verdicts are those that were recorded, but for their authors' names. Each kind of kernel in
`reference/` has an invented author, as a board of people would.
Where the judge had no calibration, the shares of the roofline are computed from the one of `calibration_h200.json`, as
those of docs/baselines.md are. The site goes to `site` in the folder of --out; the project that it is made from lies
beside it.
"""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Iterable
from pathlib import Path

from benchmarks.project import PROBLEMS, REFERENCE, ROOT, begin, run
from harness.problem import load
from harness.submission import Submission
from harness.verdict import Verdict
from harness.verdict.roofline import Calibration, Demand, roofline
from leaderboard.record.archive import archive
from leaderboard.record.entry import VERDICT
from leaderboard.record.ledger import JsonlLedger

RESULTS = ROOT / "benchmarks" / "results"
LEDGERS = tuple(sorted(path for timing in ("", "_sealed") for path in RESULTS.glob(f"baselines{timing}_h200/*.jsonl")))
CALIBRATION = RESULTS / "calibration_h200.json"
AUTHORS = {
    "triton": "ada",
    "cuda": "grace",
    "compiled": "edsger",
    "eager": "alan",
    "flash": "barbara",
    "fused": "donald",
}


def recorded(ledgers: Iterable[Path] = LEDGERS) -> list[Verdict]:
    """The verdicts of these ledgers, in the order of the gradings, with their shares of the roofline."""
    found = [entry.verdict for ledger in ledgers for entry in JsonlLedger(ledger).read() if entry.kind == VERDICT]
    calibration = Calibration.model_validate_json(CALIBRATION.read_bytes())
    return sorted((_with_shares(verdict, calibration) for verdict in found), key=lambda verdict: verdict.created_at)


def _by_people(verdict: Verdict) -> Verdict:
    submission = verdict.submission
    author = AUTHORS[submission.author]
    return verdict.model_copy(update={"submission": submission.model_copy(update={"author": author})})


def _with_shares(verdict: Verdict, calibration: Calibration) -> Verdict:
    """The verdict, with the shares that the judge left out; as it is if the problem has changed since."""
    problem = load(PROBLEMS / verdict.problem.slug)
    if problem.sha256 != verdict.problem.sha256:
        return verdict
    dtypes = {
        case.name: next(tensor for tensor in problem.resolve(case).tensors if tensor.role != "output").dtype
        for case in problem.benchmarks
    }
    benchmarks = []
    for benchmark in verdict.benchmarks:
        demand = Demand(
            nbytes=benchmark.minimum_bytes or 0, flops=benchmark.minimum_flops or 0, dtype=dtypes[benchmark.name]
        )
        share = benchmark.roofline or roofline(calibration, demand, benchmark.score.median_ns)
        benchmarks.append(benchmark.model_copy(update={"roofline": share}))
    return verdict.model_copy(update={"benchmarks": tuple(benchmarks)})


def source(verdict: Verdict) -> Submission | None:
    """The source that was graded; None if the kernel in `reference/` has changed since."""
    told, file = verdict.submission, REFERENCE / verdict.problem.slug / verdict.submission.name
    if not file.is_file():
        return None
    now = Submission(name=told.name, author=told.author, language=told.language, source=file.read_bytes())
    return now if now.sha256 == told.sha256 else None


def build(project: Path, verdicts: Iterable[Verdict]) -> Path:
    """Make a project in which all of it was graded, and build its site; returns the site's folder."""
    begin(project)
    results, devices = project / "leaderboard" / "results", project / "leaderboard" / "devices"
    results.mkdir(parents=True)
    devices.mkdir()
    shutil.copy(CALIBRATION, devices)
    for verdict in verdicts:
        if (found := source(verdict)) is not None:
            archive(project / "leaderboard" / "archive", verdict.problem.slug, found)
        JsonlLedger(results / f"{verdict.problem.slug}.jsonl").append(verdict)
    run(project, 0, "main", "site", "build")
    return project / "site"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("build/demo"), help="the project's folder, which is replaced")
    out = parser.parse_args().out
    if out.exists() and any(out.iterdir()) and not (out / "site.cache").is_dir():
        parser.error(f"{out} holds something else than an earlier demo; name another folder with --out")
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    site = build(out, map(_by_people, recorded()))
    print(f"{site / 'index.html'}: open it in a browser, or `python -m http.server -d {site}`")


if __name__ == "__main__":
    main()
