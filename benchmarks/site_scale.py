"""Measures building a large site: `python -m benchmarks.site_scale` builds one from 100,000 synthetic verdicts.

18 problems, 3 devices, 200 authors, each on six problems and on one or two devices; one run in five fails. Every build
is `kernelmark site build` in a new process, including its start. Prints its figures and writes them to
`benchmarks/results/site_scale.json`; exits with 1 if a limit is exceeded. `--lines N --keep FOLDER` makes a small one
to look at.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from datetime import timedelta
from functools import cache
from pathlib import Path
from time import perf_counter

from benchmarks.scratch import report
from harness.problem import load
from harness.submission import Submission
from harness.verdict import BadElement, Mismatch, Outcome, OutputCheck, ProblemId, Roofline, Verdict
from leaderboard.record.archive import archive
from leaderboard.record.entry import Entry, encode
from leaderboard.record.ledger import JsonlLedger
from tests.verdicts import EPOCH, accepted, failed, interval

ROOT = Path(__file__).resolve().parent.parent
RESULT = Path(__file__).parent / "results" / "site_scale.json"
LINES, AUTHORS, VERSIONS = 100_000, 200, 3
DEVICES = ("NVIDIA H200", "NVIDIA B200", "NVIDIA L4")
FIRST_BAR_S, APPEND_BAR_S, PAGE_BAR_BYTES = 60.0, 2.0, 300_000
_BUILD = "from kernelmark.commands.scripts import main; main()"
_FAULTS = (Outcome.WRONG_ANSWER,) * 3 + (Outcome.COMPILE_ERROR, Outcome.RUNTIME_ERROR, Outcome.TIMEOUT)
_GRID = 24


class Author:
    """An author with a skill, six problems and one or two devices."""

    def __init__(self, number: int, slugs: list[str]) -> None:
        draw = random.Random(number)
        self.name = f"author-{number:03d}"
        self.slugs = draw.sample(slugs, 6)
        self.devices = draw.sample(DEVICES, 2 if draw.random() < 0.25 else 1)
        self.skill = draw.lognormvariate(0, 0.25)


@cache
def model(device: str, step: int) -> Verdict:
    """An accepted verdict whose cases match its score; others are copies of it with a score nearby."""
    score_ns = round(30_000 * 1.08**step)
    roofline = Roofline(share=min(0.99, 26_000 / score_ns), limit="memory")
    return accepted(
        device_name=device, score_ns=score_ns, speedups={"eager": 52_000 / score_ns}, roofline=roofline, protocol=3
    )


@cache
def wrong(device: str, outcome: Outcome) -> Verdict:
    verdict = failed(outcome, message="2,096 of 9,600 elements wrong (21.8 %)")
    first = tuple(BadElement(index=(0, 2 * i), got="nan", expected=f"0.0{i}1", error="nan") for i in range(8))
    mismatch = Mismatch(
        output="y", shape=(32, 300), dtype="float32", wrong=2096, total=9600, nan_got=2096, worst_index=(0, 2),
        first=first, hints=("NaN where the truth is finite, in 2,096 elements",),
    )  # fmt: skip
    output = OutputCheck(output="y", dtype="float32", correct=False, mismatch=mismatch)
    tests = tuple(
        test.model_copy(update={"outputs": (output,)}) if test.outcome is Outcome.WRONG_ANSWER else test
        for test in verdict.tests
    )
    environment = verdict.environment.model_copy(update={"device_name": device})
    return verdict.model_copy(update={"environment": environment, "protocol": 3, "tests": tests})


def sources(author: Author, slug: str) -> list[Submission]:
    """An author's submissions to a problem: versions of the organizers' kernel."""
    text = (ROOT / "reference" / slug / "triton.py").read_text()
    return [
        Submission.of(
            f"# {author.name}, version {n}\n{text}\n# tuned for {author.skill:.3f}, try {n}\n".encode(),
            "py",
            author=author.name,
            name=f"{slug}_v{n}.py",
        )
        for n in range(VERSIONS)
    ]


def verdicts(lines: int, authors: list[Author], hashes: dict[str, str], folder: Path) -> Iterator[Verdict]:
    """A competition of half a year: everybody gets faster, better authors more so."""
    draw, handed_in = random.Random(1), dict[tuple[str, str], list[Submission]]()
    for index in range(lines):
        author = draw.choice(authors)
        slug, device = draw.choice(author.slugs), draw.choice(author.devices)
        if (author.name, slug) not in handed_in:
            handed_in[author.name, slug] = sources(author, slug)
            for each in handed_in[author.name, slug]:
                archive(folder, slug, each)
        version = min(VERSIONS - 1, VERSIONS * index // lines)
        submission = handed_in[author.name, slug][version]
        if draw.random() < 0.2:
            verdict = wrong(device, draw.choice(_FAULTS))
            changes: dict[str, object] = {}
        else:
            score_ns = 28_000 * (1 + author.skill * (1.6 - index / lines) * draw.lognormvariate(0, 0.35))
            step = min(_GRID - 1, max(0, round((score_ns / 30_000 - 1) * 8)))
            verdict = model(device, step)
            half_ns = round(score_ns * draw.uniform(0.001, 0.01))
            changes = {"score": interval(round(score_ns), round(score_ns) - half_ns, round(score_ns) + half_ns)}
        identity = verdict.submission.model_copy(
            update={"author": author.name, "name": submission.name, "sha256": submission.sha256}
        )
        yield verdict.model_copy(
            update={
                **changes,
                "run": f"{index:016x}",
                "created_at": EPOCH + timedelta(seconds=index * 15_552_000 // lines),
                "problem": ProblemId(slug=slug, sha256=hashes[slug]),
                "submission": identity,
            }
        )


def write(project: Path, lines: int) -> None:
    """Write a project with ledgers as `append` would write them, without an fsync for each line."""
    directories = sorted(file.parent for file in (ROOT / "problems").glob("*/problem.toml"))
    hashes = {directory.name: load(directory).sha256 for directory in directories}
    authors = [Author(number, sorted(hashes)) for number in range(AUTHORS)]
    (project / "kernelmark.toml").write_text(f"problems = {json.dumps(str(ROOT / 'problems'))}\n")
    results = project / "leaderboard" / "results"
    results.mkdir(parents=True)
    last: dict[str, Entry] = {}
    files = {slug: (results / f"{slug}.jsonl").open("wb") for slug in hashes}
    for verdict in verdicts(lines, authors, hashes, project / "leaderboard/archive"):
        slug = verdict.problem.slug
        last[slug], line = encode(last.get(slug), verdict.to_json().encode())
        files[slug].write(line)
    for file in files.values():
        file.flush()
        os.fsync(file.fileno())  # otherwise the first build would pay for it
        file.close()


def built(project: Path) -> dict[str, object]:
    """One build as a user runs it; comparing its CPU time, over all processes, shows the effect of other work."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    before, start = os.times(), perf_counter()
    ended = subprocess.run(
        [sys.executable, "-c", _BUILD, "site", "build"],
        cwd=project, env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    seconds, after = perf_counter() - start, os.times()
    cpu_s = after.children_user + after.children_system - before.children_user - before.children_system
    return {"seconds": round(seconds, 3), "cpu_seconds": round(cpu_s, 2), "said": ended.stderr.strip()}


def appended(project: Path, verdict: Verdict) -> dict[str, object]:
    JsonlLedger(project / "leaderboard" / "results" / f"{verdict.problem.slug}.jsonl").append(verdict)
    return built(project)


def measure(project: Path, lines: int) -> dict[str, object]:
    write(project, lines)
    first = built(project)
    site = project / "site"
    pages = {path: path.stat().st_size for path in site.rglob("*.html")}
    largest = max(pages, key=lambda path: pages[path])
    results = sorted((project / "leaderboard" / "results").glob("*.jsonl"))
    longest = max(results, key=lambda path: path.stat().st_size)
    *_, entry = JsonlLedger(longest).read()
    seen = entry.verdict
    while seen.score is None:  # the appended verdicts are copies of an accepted one
        seen = next(e.verdict for e in JsonlLedger(longest).read() if e.verdict.score is not None)
    late = seen.model_copy(update={"created_at": EPOCH + timedelta(days=200), "run": "e" * 16})
    nobody = seen.submission.model_copy(update={"author": "newcomer"})
    middle = late.model_copy(update={"submission": nobody, "run": "d" * 16, "score": interval(40_000)})
    record = late.model_copy(update={"run": "c" * 16, "score": interval(20_000)})
    fault = wrong(seen.environment.device_name, Outcome.WRONG_ANSWER)
    lost = fault.model_copy(update={"run": "b" * 16, "problem": seen.problem, "submission": seen.submission})
    return {
        "lines": lines,
        "ledger_bytes": sum(path.stat().st_size for path in results),
        "pages": len(pages),
        "runs": sum(path.parent.name == "runs" for path in pages),
        "comparisons": sum(path.parent.name == "compare" for path in pages),
        "authors": sum(path.parent.name == "authors" for path in pages),
        "site_bytes": sum(path.stat().st_size for path in site.rglob("*") if path.is_file()),
        "largest_page": str(largest.relative_to(site)),
        "largest_page_bytes": pages[largest],
        "largest_page_bar_bytes": PAGE_BAR_BYTES,
        "first": first,
        "first_bar_s": FIRST_BAR_S,
        "nothing_new": built(project),
        "after_a_slower_run": appended(project, middle),
        "after_a_record": appended(project, record),
        "after_a_failed_run": appended(project, lost),
        "append_bar_s": APPEND_BAR_S,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lines", type=int, default=LINES)
    parser.add_argument("--keep", type=Path, help="an empty folder for the project, which is kept")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        project = given.keep or Path(scratch)
        project.mkdir(exist_ok=True)
        result = measure(project, given.lines)
    what = "building the site of a large ledger, and building it again after one append"
    report("site_scale", what, RESULT if given.lines == LINES else Path(os.devnull), result)
    late = [result[name]["seconds"] for name in ("after_a_slower_run", "after_a_record", "after_a_failed_run")]  # type: ignore[index]
    met = result["first"]["seconds"] <= FIRST_BAR_S and max(late) <= APPEND_BAR_S  # type: ignore[index]
    return 0 if met and result["largest_page_bytes"] <= PAGE_BAR_BYTES else 1  # type: ignore[operator]


if __name__ == "__main__":
    sys.exit(main())
