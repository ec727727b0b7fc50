"""Grades and records several submissions for one command, at the same time if the machine allows it.

`kernelmark grade` and `regrade` call it with the submissions that `batch` and `regrade` find. Trusted. Any error with a
submission becomes its result, so that the others are still graded. Results come in any order and are recorded at once;
`printed` prints them in the order of the submissions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from harness.errors import HarnessError, KernelmarkError, SubmissionError
from harness.kinds import DeviceKind
from kernelmark.course.report import GradingResult
from kernelmark.project.choice import refuse_without_torch
from kernelmark.project.problems import find_baselines
from kernelmark.project.settings import Settings
from kernelmark.record.publishing import Publisher, table_of
from kernelmark.record.records import tables
from kernelmark.text.terminal import print_lines, unexpected

if TYPE_CHECKING:
    from harness.verdict import Verdict
    from kernelmark.grading.fleet import JobResult
    from kernelmark.grading.setup import PreparedJob
    from kernelmark.record.lateness import Remark
    from kernelmark.text.progress import BatchReporter

PlacedResult = tuple[int, GradingResult]
"""A result, and the index of its submission."""


class AdmittedJob(NamedTuple):
    """A submission that may be graded, and the remark to record with it.

    It is `exempt` from the daily limits if an organizer, and not its author, wants it graded.
    """

    job: PreparedJob
    remark: Remark | None
    exempt: bool = False


class GradingRequest(NamedTuple):
    """A submission that a command is to grade."""

    path: str
    """The name of its result."""
    read: Callable[[], AdmittedJob | GradingResult]
    """Reads and admits it, or returns its result if that is recorded already."""
    author: str


def printed(
    results: Iterable[PlacedResult], form: str, lines: Callable[[int, GradingResult], Iterable[str]] | None = None
) -> Iterator[PlacedResult]:
    """Pass on results as they come. With the form "table" each is printed once all before it are printed, by default in
    full; `lines` may shorten them. Those that remain are printed at the end.
    """
    waiting: dict[int, GradingResult] = {}
    next_place = 0

    def show(place: int, result: GradingResult) -> None:
        if form == "table":
            print_lines(lines(place, result) if lines else [*result.lines(), ""])

    try:
        for place, result in results:
            waiting[place] = result
            while next_place in waiting:
                show(next_place, waiting.pop(next_place))
                next_place += 1
            yield place, result
    finally:
        for place, result in sorted(waiting.items()):
            show(place, result)


def grade_all(
    settings: Settings,
    requests: Sequence[GradingRequest],
    jobs: int | None,
    *,
    record: bool,
    refuse_together: bool = False,
    quiet: bool = False,
) -> Iterator[PlacedResult]:
    """Read and admit all submissions now, and grade them while the results are iterated.

    `jobs` is how many each device grades at a time. Submissions for a GPU are graded first, and then those for the CPU,
    whose times the others would disturb.

    Raises:
        UsageError: the packages for grading are not installed.
        KernelmarkError: with `refuse_together`, if all are refused and several for the same reason: this reason.
    """
    refuse_without_torch()
    ready: dict[DeviceKind, dict[int, AdmittedJob]] = {"cuda": {}, "cpu": {}}
    done: dict[int, GradingResult] = {}
    refused: list[Exception] = []
    for place, submission in enumerate(requests):
        try:
            read = submission.read()
            if isinstance(read, GradingResult):
                done[place] = read
            else:
                find_baselines(settings, read.job.problem, read.job.device)  # raises if one is missing
                ready[read.job.device][place] = read
        except Exception as error:  # noqa: BLE001 - one failure must not keep the others from being graded
            refused.append(error)
            done[place] = _failed(submission.path, error)
    if refuse_together and len(refused) == len(requests):
        alike = Counter(str(error) for error in refused if isinstance(error, KernelmarkError))
        for message, count in alike.most_common(1):
            if count > 1:
                raise next(error for error in refused if str(error) == message)

    def results() -> Iterator[PlacedResult]:
        from kernelmark.text.progress import BatchReporter

        with BatchReporter(len(requests)) as reporter, Publisher(settings) as publisher:
            recorder = publisher if record else None
            graded = [
                _graded(settings, device, requests, admitted, jobs, reporter, recorder)
                for device, admitted in ready.items()
            ]
            for place, result in chain(done.items(), *graded):
                reporter.finished(result.path, result.outcome, quiet=quiet)
                with reporter.hidden():
                    yield place, result

    return results()


def _graded(
    settings: Settings,
    device: DeviceKind,
    requests: Sequence[GradingRequest],
    ready: dict[int, AdmittedJob],
    jobs: int | None,
    reporter: BatchReporter,
    publisher: Publisher | None,
) -> Iterator[PlacedResult]:
    from kernelmark.grading.fleet import Job
    from kernelmark.grading.fleet.one_by_one import several

    fleet_jobs = [
        Job(problem=admitted.job.problem, submission=admitted.job.submission, key=place)
        for place, admitted in ready.items()
    ]
    left, effort, baselines = dict(ready), settings.effort, settings.baselines
    try:
        with several(settings, device, jobs, count=len(fleet_jobs), on_progress=reporter.report) as grades:
            for result in grades.grade_many(fleet_jobs, effort=effort, baselines=baselines, reuse=False):
                place = result.job.key
                assert isinstance(place, int)
                yield place, _recorded(requests[place].path, left.pop(place), result, publisher)
    except KernelmarkError as error:  # no job, or no further one, could be graded
        yield from ((place, _failed(requests[place].path, error)) for place in left)


def _recorded(path: str, ready: AdmittedJob, result: JobResult, publisher: Publisher | None) -> GradingResult:
    """Record the verdict, if there is a publisher; returns the result for the report."""
    from kernelmark.grading.recorder import left_today, record, recorded

    verdict = result.verdict
    if verdict is None:
        assert result.error is not None
        return _failed(path, result.error)
    if publisher is None:
        return GradingResult(path, verdict.outcome.exit_code, verdict.message, verdict)
    try:
        record(ready.job, verdict, ready.remark, exempt=ready.exempt)
        slug = ready.job.problem.slug
        publisher.due(slug)
        table = table_of(tables(ready.job.settings, slug), verdict)
    except Exception as error:  # noqa: BLE001 - one failure must not keep the others from being recorded
        is_recorded = False
        with suppress(KernelmarkError):  # the verdict is in the ledger if only the board could not be written
            is_recorded = recorded(ready.job, verdict.run) is not None
        return _failed(path, error, verdict, recorded=is_recorded)
    left = "" if ready.exempt else left_today(ready.job)
    return GradingResult(path, verdict.outcome.exit_code, verdict.message, verdict, table, left, recorded=True)


def _failed(path: str, error: Exception, verdict: Verdict | None = None, *, recorded: bool = False) -> GradingResult:
    if isinstance(error, KernelmarkError):
        by_author = verdict is None and isinstance(error, SubmissionError)
        return GradingResult(path, error.exit_code, str(error), verdict, by_author=by_author, recorded=recorded)
    return GradingResult(path, HarnessError.exit_code, unexpected(error), verdict, recorded=recorded)
