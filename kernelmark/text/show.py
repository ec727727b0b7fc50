"""Formats verdicts, checks and problems as plain text for a terminal.

Commands print the lines; nothing here does I/O. Trusted code over untrusted text: everything from a participant goes
through `visible`, so no escape sequence, carriage return or bidirectional override reaches the terminal. The result is
never parsed as markup.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from harness.verdict import Outcome, Verdict
from kernelmark.text import findings, standings, times
from kernelmark.text.terminal import INDENT, Line, block, columns, counted, labelled, visible
from leaderboard.record.fields import how_timed
from leaderboard.record.moderation import state
from leaderboard.record.pooling import NO_RANK, WIDEST
from leaderboard.text.presented import with_own_name, without_speedups
from leaderboard.text.units import duration, interval, ratio

if TYPE_CHECKING:
    from pathlib import Path

    from harness.profiling.compilation import Compilation
    from harness.submission import Submission
    from harness.verdict import (
        Check,
        Environment,
        Speedup,
    )
    from harness.verdict.roofline import Calibration
    from leaderboard.record.moderation import Moderation
    from leaderboard.record.pooling import PooledSource
    from leaderboard.standings.ranking import Table

NOT_ISOLATED = (
    "not isolated: the submission ran with your own privileges, and its time is ranked separately; "
    "install Docker or bubblewrap; `kernelmark doctor` says how"
)
INTERPRETED = "Triton's interpreter ran it: that shows whether it is right, not how fast it is; a speedup needs a GPU"

_STYLES = {Outcome.ACCEPTED: "green", Outcome.UNSUPPORTED: "yellow", Outcome.INCOMPLETE: "yellow"}
_ALIKE = ("no difference was measured", "yellow")
_LOG_LINES = 10  # at each end of a long log
_DOCUMENT = "--format json"
_BENCH = f"kernelmark bench {_DOCUMENT}"


def check(result: Check, *, for_gpus: int = 0) -> Iterator[str]:
    """The result of build and tests: the outcome, what failed and why, and notes on its limits.

    `for_gpus` is how many tests of the problem were skipped because they need a GPU.
    """
    result = with_own_name(result)
    yield from _outcome(result)
    yield from _notes(result.environment, for_gpus)


def verdict(
    result: Verdict,
    table: Table | None = None,
    left: str = "",
    *,
    record: bool = True,
    for_gpus: int = 0,
    for_author: bool = False,
    profiled: bool = False,
) -> Iterator[str]:
    """The result of a whole grading.

    Args:
        table: the table of the board that ranks it, if any.
        left: what the daily limits leave to the author, in words.
        record: whether the run is recorded; only then it is named, as `kernelmark show` finds no others.
        for_gpus: as for `check`.
        for_author: whether the author reads it and somebody else graded: the log is complete, and there is no advice
            on grading.
        profiled: whether this is for `kernelmark profile`, which shows and measures less than `kernelmark bench`.
    """
    result = _presented(result)
    shown_by = f"kernelmark show {result.run}" if record else _BENCH if profiled else _DOCUMENT
    yield from _outcome(result, whole_log="" if for_author else shown_by)
    if result.score is not None:
        yield ""
        yield from times.table(result, result.score)
        yield ""
        for line in times.unfinished(result, for_author=for_author, profiled=profiled):
            yield labelled("stopped", line)
    for doubt in times.doubts(result, for_author=for_author, profiled=profiled):
        yield labelled("doubt", doubt)
    yield from _notes(result.environment, for_gpus, for_author=for_author)
    if table is not None:
        yield labelled("standing", standings.standing(result, table, for_author=for_author))
    if record:
        yield labelled("run", result.run)
    if left:
        yield labelled("left today", left)


def compilation(found: Compilation) -> str:
    """A line that says whether Triton's kernels compile for a GPU; this changes no outcome."""
    if found.refused:
        return labelled("warning", f"does not compile for a GPU ({found.architecture}): {visible(found.refused)}")
    if not found.tried:
        return labelled("compiles", f"not known for a GPU ({found.architecture}): {visible(found.unknown)}")
    partly = f", as far as was tried: {found.tried} of {found.cases} cases" if found.unknown else ""
    return labelled("compiles", f"for a GPU ({found.architecture}){partly}")


def comparison(result: Verdict, other: Submission) -> Iterator[str]:
    """A grading in alternation with another kernel: how many times as fast it is, overall and in each case."""
    result = _presented(result)
    faster = next((_faster(result.submission.name, other, speedup) for speedup in result.speedups), None)
    if result.environment.interpreted and result.score is not None:
        what = "not compared: Triton's interpreter ran it, and such a time says nothing of its speed"
        faster = Line(what, "bold yellow", hang=2)
    yield from _outcome(result, faster)
    yield labelled("against", f"{visible(other.name)} by {visible(other.author)}, sha256 {other.sha256[:12]}")
    if result.score is not None:
        yield ""
        yield from times.table(result, result.score)
        yield ""
        for line in times.memory(result):
            yield labelled("memory", line)
    for doubt in times.doubts(result):
        yield labelled("doubt", doubt)
    yield from _notes(result.environment)


def _faster(name: str, other: Submission, speedup: Speedup) -> Line:
    label = speedup.baseline.removeprefix(other.stem) if speedup.baseline.startswith(other.stem) else ""
    low, high = speedup.ratio.low, speedup.ratio.high
    whether, style = ("faster", "green") if low > 1 else ("slower", "red") if high < 1 else _ALIKE
    if high > WIDEST * low:
        whether, style = "not decided, the interval is too wide", "yellow"
    text = f"{whether}: {visible(name)} is {ratio(speedup.ratio)} times as fast as {visible(other.name + label)}"
    return Line(text, f"bold {style}", hang=2)


def run(result: Verdict, events: Sequence[Moderation] = (), source: PooledSource | None = None) -> Iterator[str]:
    """A recorded verdict in full, after the pooled result of its source and the events of organizers."""
    result = _presented(result)
    yield from _headline(result)
    if source is not None and len(source.gradings) > 1:
        newest = "" if source.verdict.run == result.run else f"; the board shows {source.verdict.run}, the newest"
        yield labelled("pooled", f"{len(source.gradings)} gradings of this source: {interval(source.score)}{newest}")
    if source is not None and source.state in NO_RANK:
        yield labelled("standing", f"none: {NO_RANK[source.state]}")
    if events:
        yield labelled("state", state(events))
        yield from standings.moderation(events)
    yield from columns(list(_identity(result)), prose=True)
    for test in result.tests:
        yield ""
        yield labelled("failed" if test.outcome.exit_code else "test", findings.line(test))
        yield from findings.outputs(test)
    if result.score is not None:
        yield ""
        yield from times.table(result, result.score)
    for doubt in result.doubts:
        yield labelled("doubt", f"{visible(doubt.code)}: {visible(doubt.text)}")
    for benchmark in result.benchmarks:
        yield ""
        yield from times.benchmark(benchmark, result.effort)
    yield from _traceback_and_log(result)
    yield from _notes(result.environment)


def calibration(measured: Calibration, path: Path) -> Iterator[str]:
    """A device's calibration, and where it was stored."""
    spreads = f"{100 * measured.memory_spread:.1f} % of memory, {100 * measured.arithmetic_spread:.1f} % of products"
    yield f"{visible(measured.device_name)}, spread {spreads}"
    rows = [
        ("copy", f"{measured.copy_bytes_per_s / 1e9:,.0f} GB/s"),
        ("read", f"{measured.read_bytes_per_s / 1e9:,.0f} GB/s"),
    ]
    rows += [(f"{name} product", f"{rate / 1e12:,.2f} TFLOP/s") for name, rate in measured.flops_per_s.items()]
    yield from columns(rows, right={1})
    yield f"{INDENT}stored in {path}"


def _presented(result: Verdict) -> Verdict:
    """The result with its author's file name, and without meaningless speedups."""
    return without_speedups(with_own_name(result))


def _outcome(result: Check, first: Line | None = None, whole_log: str = _DOCUMENT) -> Iterator[str]:
    """`whole_log` is the command or option that shows the whole log; empty to show it here."""
    yield from _headline(result, first)
    failed = [test for test in result.tests if test.outcome.exit_code]
    if result.tests:
        missed = f", {result.tests_not_run} not run" if result.tests_not_run else ""
        total, hidden = len(result.tests) + result.tests_not_run, sum(test.hidden for test in result.tests)
        unseen = f", {hidden} of them with hidden inputs" if hidden and not failed else ""
        yield labelled("tests", f"{len(result.tests) - len(failed)} of {total} right{unseen}{missed}")
    yield from findings.failures(failed, none_right=len(failed) == len(result.tests) and not result.tests_not_run)
    yield from _traceback_and_log(
        result.model_copy(update={"log": _shortened(result.log, whole_log) if whole_log else result.log})
    )


def _headline(result: Check, first: Line | None = None) -> Iterator[str]:
    """The result in one line (`first`, or the outcome with the time or the reason), the submission and the device."""
    outcome = result.outcome.value.replace("_", " ")
    score = result.score if isinstance(result, Verdict) else None
    why = visible(findings.reason(result)) or (f"{interval(score)} a call" if score else "")
    yield first or Line(f"{outcome}: {why}" if why else outcome, f"bold {_STYLES.get(result.outcome, 'red')}", hang=2)
    submission = result.submission
    files = visible(" with ".join([submission.name, *([", ".join(submission.beside)] if submission.beside else [])]))
    who = f"{files} by {visible(submission.author)}"
    yield labelled(visible(result.problem.slug), f"{who}, sha256 {submission.sha256[:12]}", "dim")
    yield labelled("device", _device(result.environment))


def _device(environment: Environment) -> str:
    isolation = environment.sandbox if environment.isolated else "process (not isolated)"
    return f"{visible(environment.device_name)} ({environment.device_kind}), sandbox {isolation}"


def _notes(environment: Environment, for_gpus: int = 0, *, for_author: bool = False) -> Iterator[str]:
    if not environment.isolated and not for_author:
        yield labelled("note", NOT_ISOLATED)
    if environment.interpreted:
        yield labelled("note", INTERPRETED)
    if for_gpus:
        yield labelled("note", f"on a GPU there are {counted(for_gpus, 'more test')}")


def _identity(result: Verdict) -> Iterator[tuple[str, str]]:
    e = result.environment
    yield "run", f"{result.run}, {result.created_at.isoformat(timespec='seconds')}, took {duration(result.duration_ns)}"
    private = result.problem.private
    with_private = f", {counted(private.cases, 'private case')}" if private else ""
    yield "problem", f"{visible(result.problem.slug)}, sha256 {result.problem.sha256}{with_private}"
    yield (
        "submission",
        f"{result.submission.language}, {result.submission.size_bytes:,} bytes, sha256 {result.submission.sha256}",
    )
    timed = how_timed(result.timing, e.device_kind)
    ended = "" if result.outcome is Outcome.ACCEPTED else f"ended in the stage {result.stage.value}"
    parts = (str(result.protocol), timed, f"effort {result.effort}", ended)
    yield "protocol", ", ".join(part for part in parts if part)
    if result.timing == "sealed":
        yield (
            "timing",
            "sealed rounds, as before protocol 5: the submission's process reported its times, within bounds",
        )
    versions = {"python": e.python, "torch": e.torch, "triton": e.triton, "driver": e.driver, "CUDA": e.cuda}
    yield "versions", ", ".join(f"{name} {visible(value)}" for name, value in versions.items() if value is not None)
    if e.power_limit_mw is not None:
        yield "power limit", f"{e.power_limit_mw / 1000:g} W"
    if e.device_uuid_sha256 is not None:
        yield "device UUID", f"sha256 {e.device_uuid_sha256}"
    if e.image_digest is not None:
        yield "image", visible(e.image_digest)


def _shortened(log: str, whole: str) -> str:
    lines = log.rstrip("\n").split("\n")
    if len(lines) <= 2 * _LOG_LINES:
        return log
    left_out = f"[... {len(lines) - 2 * _LOG_LINES:,} lines; `{whole}` shows them ...]"
    return "\n".join([*lines[:_LOG_LINES], left_out, *lines[-_LOG_LINES:]])


def _traceback_and_log(result: Check) -> Iterator[str]:
    for title, text in (("traceback", result.traceback), ("log", result.log)):
        if text.strip():
            yield Line(INDENT + title, "dim")
            yield from block(text)
