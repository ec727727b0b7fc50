"""The page of a run: its score in each case, how that was measured, doubts, and its source. Trusted; pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Any, NamedTuple

from markupsafe import Markup

from harness import stats
from harness.errors import HarnessError
from harness.verdict import BenchmarkResult, Doubt, Outcome, ReplayedBenchmark, Verdict
from leaderboard.publishing.site import markup, paths
from leaderboard.publishing.site.boards import Stand
from leaderboard.publishing.site.book import Book, Placed
from leaderboard.publishing.site.charts import trace
from leaderboard.publishing.site.document import RunDocument
from leaderboard.publishing.site.folder import Page, as_text
from leaderboard.publishing.site.inputs import Kind, Site
from leaderboard.record.archive import paths as archived
from leaderboard.record.archive import present
from leaderboard.record.fields import how_timed
from leaderboard.text import kernels as kernel_table
from leaderboard.text.metrics import METRICS, Column
from leaderboard.text.presented import without_speedups

_STOPPED = {
    "converged": "narrow interval",
    "budget": "budget used up",
    "unstable": "still wide",
}
_ROUNDS = "Time per call of every round by the judge's clock, in percent of the median of its case."
_CALLS = Markup(
    "Time of every call, in percent of the median by CUPTI of its case: "
    '<b class="key-main">by CUPTI</b>, <b class="key-second">by events</b>.'
)
_CASES = 12  # maximum number of cases with plots, which keeps a page below 300 KB
_KERNELS = 100  # maximum number of rows in the table of kernels, for the same reason
_BASELINES, _BASELINE_BYTES = 3, 20_000  # number and size of the baselines' sources, for the same reason
_LETTERS = 80  # maximum length of a kernel's name


class ShownDoubt(NamedTuple):
    """A doubt, the cases that it concerns (empty: the whole run), and what it means."""

    code: str
    text: str
    cases: str
    meaning: str


class KernelRow(NamedTuple):
    """One kernel that a case's call launches: its cells, and its time as a number to sort by."""

    case: str
    cells: tuple[str, ...]
    time_ns: int


def pages(site: Site) -> Iterator[Page]:
    for book in site.books:
        stands = {stand.line.run: stand for stand in site.stands[book.problem]}
        for run in book.runs:
            yield _page(site, book, run, book.placed.get(run), stands.get(run))


def _page(site: Site, book: Book, run: str, placed: Placed | None, stand: Stand | None) -> Page:
    """The page of a run, and of its row if it is on a board; `stand` has the row that counts instead of it."""
    path, line, hidden = paths.run(run), book.runs[run], site.hidden(book.problem)
    row, profiled = placed.row if placed else None, site.profiles.get(run)

    def make() -> tuple[RunDocument, dict[str, Any]]:
        verdict = book.verdict(line)
        sources = site.sources(book.problem, verdict.submission)
        alternated = {other.name: other.sha256 for case in verdict.benchmarks for other in case.baselines}
        baselines = {name: found for name, sha256 in alternated.items() if (found := site.kernel(book.problem, sha256))}
        baseline_sources = {name: kernel.source.decode() for name, kernel in sorted(baselines.items())}
        if sources is None:  # the log and the traceback can quote it
            verdict = verdict.model_copy(update={"log": "", "traceback": ""})
        document = RunDocument(
            verdict=verdict,
            source=(sources or {}).get(line.name),
            beside={name: text for name, text in (sources or {}).items() if name != line.name} or None,
            hidden=hidden,
            command=command(site, verdict),
            baseline_sources=baseline_sources or None,
            state=row.state if row else verdict.no_rank or "ranks",
            gradings=row.gradings if row else 1,
            pooled=row.score if row and row.gradings > 1 else None,
            stale=row.stale if row else None,
            instead=stand.placed.row.run if stand else None,
            graded_again=stand is not None and stand.counts == "newer_grading",
        )
        kernels, comparable = list(launched(verdict)), without_speedups(verdict)
        tests = [(case, [output for output in case.outputs if output.max_error]) for case in verdict.tests]
        outputs = [output for _, found in tests for output in found]
        return document, {
            "doubts": list(_doubts(verdict)),
            "stopped": _STOPPED,
            "speedups": comparable.speedups,
            "baselines": sorted({paired.name for b in comparable.benchmarks for paired in b.baselines}),
            "metrics": _metrics(verdict),
            "replayed": list(_replayed(verdict)),
            "kernels": kernels[:_KERNELS],
            "kernels_left_out": len(kernels[_KERNELS:]),
            "over_time": _over_time(verdict),
            "samples": [
                (trace.samples(case), case.name) for case in verdict.benchmarks[:_CASES] if case.mode == "replayed"
            ],
            "environment": list(_environment(verdict)),
            "profiled": profiled,
            "tests": tests,
            "largest": bool(outputs),
            "rms": any(output.rms_error for output in outputs),
            "right": sum(case.outcome is Outcome.ACCEPTED for case in verdict.tests),
            "share": line.share,
            "limits": " and ".join(sorted({b.roofline.limit for b in verdict.benchmarks if b.roofline})),
            "uncalibrated": any(b.roofline is None and _states_cost(b) for b in verdict.benchmarks),
            "title": site.titles.get(book.problem, book.problem),
            "sources": markup.sources(sources or {}, line.language),
            "baseline_sources": [
                (name, *markup.source(text, baselines[name].language, _BASELINE_BYTES))
                for name, text in [*baseline_sources.items()][:_BASELINES]
            ],
        }

    marks = [line.hash, hidden, site.source_mark(book.problem, line), site.titles.get(book.problem, "")]
    marks += [placed.mark if placed else "", f"{stand.counts} {stand.placed.row.run}" if stand else ""]
    if row is not None and row.stale is not None:
        marks.append(as_text([row.stale, row.stale.again in site.runs]))
    if profiled is not None:
        marks.append(as_text(profiled))
    return site.page(path, "run.html", marks, make)


def command(site: Site, verdict: Verdict) -> str:
    """The command that grades the same source again, from the project's root."""
    submission, ran, archive = verdict.submission, verdict.environment, site.material.archive
    slug = verdict.problem.slug
    kernel = site.kernel(slug, submission.sha256)
    try:
        found = archived(archive, slug, submission)
        file, *others = (f"{site.material.archive_name}/{path.relative_to(archive)}" for path in found)
    except HarnessError:  # its slug or author is not a valid archive path
        file, others = "FILE", list(submission.beside or ())
    if kernel is not None and not present(archive, slug, submission):
        file, others = f"{site.material.reference_name}/{slug}/{kernel.name}", []
    words = ["submit", slug, file]
    for other in others:
        words += ["--with", other]
    words += ["--device", ran.device_kind, "--sandbox", ran.sandbox]
    words += [f"--{verdict.effort}"] if verdict.effort != "default" else []
    for name in sorted({paired.name for b in verdict.benchmarks for paired in b.baselines}):
        words += ["--baseline", name]
    return " ".join(map(shlex.quote, [*words, "--no-record"]))


def _metrics(verdict: Verdict) -> list[Column]:
    """The columns of metrics that some case has."""
    columns = [column for metric in METRICS if metric.in_tables for column in metric.columns]
    return [column for column in columns if any(map(column.text, verdict.benchmarks))]


def _replayed(verdict: Verdict) -> Iterator[tuple[ReplayedBenchmark, list[int]]]:
    """The replayed cases, with their medians by CUPTI, by events and by the launcher's host clock."""
    for b in verdict.benchmarks:
        if b.mode == "replayed":
            yield b, [round(stats.median(ns)) for ns in (b.calls.device_ns, b.calls.event_ns, b.calls.span_ns)]


def launched(verdict: Verdict) -> Iterator[KernelRow]:
    """The kernels of a call, case by case, if the calls were replayed."""
    for b in verdict.benchmarks:
        for kernel in b.kernels if b.mode == "replayed" else ():
            yield KernelRow(b.name, kernel_table.cells(kernel, _LETTERS), kernel.time_ns or 0)


def _states_cost(benchmark: BenchmarkResult) -> bool:
    """Whether the problem states what a call must move or compute, without which there is no share of the roofline."""
    return bool(benchmark.minimum_bytes or benchmark.minimum_flops)


def _over_time(verdict: Verdict) -> list[tuple[Markup, Markup | str]]:
    replayed = verdict.timing == "replayed"
    after = "block of calls" if replayed else "round"
    return [
        (trace.over_time(verdict.benchmarks), _CALLS if replayed else _ROUNDS),
        *((svg, f"{name}, after each {after}") for name, svg in trace.sensors(verdict.benchmarks)),
    ]


def _doubts(verdict: Verdict) -> Iterator[ShownDoubt]:
    for doubt in verdict.doubts:
        yield ShownDoubt(doubt.code, doubt.text, "", _explained(doubt))
    cases: dict[Doubt, list[str]] = {}
    for benchmark in verdict.benchmarks:
        for doubt in benchmark.doubts:
            cases.setdefault(doubt, []).append(benchmark.name)
    for doubt, names in cases.items():
        every = 1 < len(names) == len(verdict.benchmarks)
        yield ShownDoubt(doubt.code, doubt.text, "every case" if every else ", ".join(names), _explained(doubt))


def _explained(doubt: Doubt) -> str:
    advice = f" What to do: {doubt.advice}." if doubt.advice else ""
    return doubt.meaning + advice


def _environment(verdict: Verdict) -> Iterator[tuple[str, str]]:
    ran, submission = verdict.environment, verdict.submission
    yield "device", f"{ran.device_name} ({ran.device_kind})"
    yield "sandbox", ran.sandbox + ("" if ran.isolated else ", not isolated")
    if ran.interpreted:
        yield "Triton", "in its interpreter, which shows whether a kernel is right, not how fast it is"
    versions = (("python", ran.python), ("torch", ran.torch), ("triton", ran.triton), ("driver", ran.driver))
    for name, version in (*versions, ("CUDA", ran.cuda), ("image", ran.image_digest)):
        if version is not None:
            yield name, version
    if ran.power_limit_mw is not None:
        yield "power limit", f"{ran.power_limit_mw / 1000:g} W"
    if ran.device_uuid_sha256 is not None:
        yield "device UUID", f"sha256 {ran.device_uuid_sha256}"
    timed = how_timed(verdict.timing, ran.device_kind)
    yield "protocol", ", ".join([str(verdict.protocol), *([timed] if timed else []), f"effort {verdict.effort}"])
    yield "problem", verdict.problem.sha256
    yield "submission", f"{submission.sha256}, {submission.size_bytes:,} bytes"
    if submission.beside:
        yield "files beside it", ", ".join(submission.beside)
    yield "took", f"{verdict.duration_ns / 1e9:.1f} s"
    yield "seeds", ", ".join(map(str, verdict.seeds[:12])) + (", …" if len(verdict.seeds) > 12 else "")


KIND = Kind(pages, (RunDocument,))
