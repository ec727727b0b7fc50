"""Grades and records several submissions for one command, side by side where the machine allows it.

`kernelmark grade` and `regrade` call it, with the submissions that `batch` and `regrade` find. Trusted. Any error, the
submission's or ours, is part of that submission's result, so that the others are still graded. Results come in any
order; each is recorded as soon as it is there, and `printed` prints them in the order of the submissions.
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

Placed = tuple[int, GradingResult]
"""A result, and the place of its submission among all, counted from 0."""


class AdmittedJob(NamedTuple):
    """A submission that may be graded, and recorded with a remark about when it was handed in.

    It is `exempt` from the limits a day if an organizer wants it graded, and not its author.
    """

    job: PreparedJob
    remark: Remark | None
    exempt: bool = False


class GradingRequest(NamedTuple):
    """A submission that a command is to grade: what its result is called, and how it is read and admitted.

    What is read is its result instead if that is known already.
    """

    path: str
    read: Callable[[], AdmittedJob | GradingResult]
    author: str


def printed(
    results: Iterable[Placed], form: str, lines: Callable[[int, GradingResult], Iterable[str]] | None = None
) -> Iterator[Placed]:
    """The results as they come; with the form "table" each is printed as soon as all before it are there, and what is
    left at the end. `lines` says how, if not in full.
    """
    waiting: dict[int, GradingResult] = {}
    following = 0

    def show(place: int, result: GradingResult) -> None:
        if form == "table":
            print_lines(lines(place, result) if lines else [*result.lines(), ""])

    try:
        for place, result in results:
            waiting[place] = result
            while following in waiting:
                show(following, waiting.pop(following))
                following += 1
            yield place, result
    finally:
        for place, result in sorted(waiting.items()):
            show(place, result)


def grade_all(
    settings: Settings,
    asked: Sequence[GradingRequest],
    jobs: int | None,
    *,
    record: bool,
    refuse_together: bool = False,
    quiet: bool = False,
) -> Iterator[Placed]:
    """Read and admit all submissions at once, and grade them when iterated; yields each result as soon as it is there.

    `jobs` is how many are graded at a time on each device. Those for a GPU are graded first, and those for the CPU,
    which the others would disturb, after them.

    Raises:
        UsageError: nothing can be graded with what is installed.
        KernelmarkError: with `refuse_together`, why none can be graded, if several are refused for this reason.
    """
    refuse_without_torch()
    ready: dict[DeviceKind, dict[int, AdmittedJob]] = {"cuda": {}, "cpu": {}}
    done: dict[int, GradingResult] = {}
    refused: list[Exception] = []
    for place, submission in enumerate(asked):
        try:
            read = submission.read()
            if isinstance(read, GradingResult):
                done[place] = read
            else:
                ready[read.job.device][place] = read
        except Exception as error:  # noqa: BLE001 - one failure must not keep the others from being graded
            refused.append(error)
            done[place] = _failed(submission.path, error)
    if refuse_together and len(refused) == len(asked):
        alike = Counter(str(error) for error in refused if isinstance(error, KernelmarkError))
        for message, count in alike.most_common(1):
            if count > 1:
                raise next(error for error in refused if str(error) == message)

    def results() -> Iterator[Placed]:
        from kernelmark.text.progress import BatchReporter

        with BatchReporter(len(asked)) as reporter, Publisher(settings) as publisher:
            recorder = publisher if record else None
            graded = [_graded(settings, of, asked, mine, jobs, reporter, recorder) for of, mine in ready.items()]
            for place, result in chain(done.items(), *graded):
                reporter.finished(result.path, result.outcome, quiet=quiet)
                with reporter.hidden():
                    yield place, result

    return results()


def _graded(
    settings: Settings,
    device: DeviceKind,
    asked: Sequence[GradingRequest],
    ready: dict[int, AdmittedJob],
    jobs: int | None,
    reporter: BatchReporter,
    publisher: Publisher | None,
) -> Iterator[Placed]:
    from kernelmark.grading.fleet import Job
    from kernelmark.grading.fleet.one_by_one import several

    given = [Job(problem=one.job.problem, submission=one.job.submission, key=place) for place, one in ready.items()]
    left = dict(ready)
    try:
        with several(settings, device, jobs, count=len(given), on_progress=reporter.report) as grades:
            for result in grades.grade_many(given, effort=settings.effort, baselines=settings.baselines, reuse=False):
                place = result.job.key
                assert isinstance(place, int)
                yield place, _recorded(asked[place].path, left.pop(place), result, publisher)
    except KernelmarkError as error:  # none could be graded, or no more
        yield from ((place, _failed(asked[place].path, error)) for place in left)


def _recorded(path: str, ready: AdmittedJob, result: JobResult, publisher: Publisher | None) -> GradingResult:
    """The result for the report; its verdict is recorded if there is a publisher."""
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
        with suppress(KernelmarkError):  # the ledger has it where only the board could not be written
            is_recorded = recorded(ready.job, verdict.run) is not None
        return _failed(path, error, verdict, recorded=is_recorded)
    left = "" if ready.exempt else left_today(ready.job)
    return GradingResult(path, verdict.outcome.exit_code, verdict.message, verdict, table, left, recorded=True)


def _failed(path: str, error: Exception, verdict: Verdict | None = None, *, recorded: bool = False) -> GradingResult:
    if isinstance(error, KernelmarkError):
        by_author = verdict is None and isinstance(error, SubmissionError)
        return GradingResult(path, error.exit_code, str(error), verdict, by_author=by_author, recorded=recorded)
    return GradingResult(path, HarnessError.exit_code, unexpected(error), verdict, recorded=recorded)
