"""Grades and records several submissions for one command, side by side where the machine allows it.

`kernelmark grade` and `regrade` call it, with the submissions that `batch` and `regrade` find. Trusted. Any error, the
submission's or ours, is part of that submission's result, so that the others are still graded. Results come in any
order; each is recorded as soon as it is there, and `InOrder` prints them in the order of the submissions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple, Self

from harness.errors import HarnessError, KernelmarkError, SubmissionError
from harness.kinds import DeviceKind
from kernelmark.course.report import GradingResult
from kernelmark.project.choice import refuse_without_torch
from kernelmark.project.settings import Settings
from kernelmark.record.publishing import Publisher, table_of
from kernelmark.record.records import tables
from kernelmark.text.printing import print_lines
from kernelmark.text.terminal import unexpected

if TYPE_CHECKING:
    from harness.verdict import Verdict
    from kernelmark.grading.fleet import JobResult
    from kernelmark.grading.recorder import Remark
    from kernelmark.grading.setup import PreparedJob
    from kernelmark.text.progress import BatchReporter


class AdmittedJob(NamedTuple):
    """A submission that may be graded, and recorded with a remark about when it was handed in; `path` names its result.

    It is `exempt` from the limits a day if an organizer wants it graded, and not its author. If its result is `known`,
    it is not graded.
    """

    path: str
    job: PreparedJob
    remark: Remark | None
    exempt: bool = False
    known: GradingResult | None = None


@dataclass(frozen=True)
class GradingRequest:
    """A submission that a command is to grade: what its result is called, and how it is read and admitted."""

    path: str
    read: Callable[[], AdmittedJob]


class InOrder:
    """Prints results in the order of their places, each as soon as all before it are there; what is left at the end."""

    def __init__(self, form: str) -> None:
        self.results: dict[int, GradingResult] = {}
        self._form, self._printed = form, 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for place in sorted(place for place in self.results if place >= self._printed):
            self._print(place)

    def add(self, place: int, result: GradingResult) -> None:
        """Add the result of a place, counted from 0."""
        self.results[place] = result
        while self._printed in self.results:
            self._print(self._printed)
            self._printed += 1

    def _print(self, place: int) -> None:
        if self._form == "table":
            print_lines([*self.results[place].lines(), ""])


def grade_all(
    settings: Settings,
    asked: Sequence[GradingRequest],
    jobs: int | None,
    *,
    record: bool,
    refuse_together: bool = False,
) -> Iterator[tuple[int, GradingResult]]:
    """Read and admit all submissions at once, and grade them when iterated; yields each one's place and result as soon
    as it is there.

    `jobs` is how many are graded at a time on each device. Those for a GPU are graded first, and those for the CPU,
    which the others would disturb, after them.

    Raises:
        UsageError: nothing can be graded with what is installed.
        KernelmarkError: with `refuse_together`, why none can be graded, if several are refused for this reason.
    """
    refuse_without_torch()
    ready: dict[DeviceKind, dict[int, AdmittedJob]] = {"cuda": {}, "cpu": {}}
    failed: dict[int, Exception] = {}
    known: dict[int, GradingResult] = {}
    for place, submission in enumerate(asked):
        try:
            read = submission.read()
            if read.known is not None:
                known[place] = read.known
            else:
                ready[read.job.device][place] = read
        except Exception as error:  # noqa: BLE001 - one failure must not keep the others from being graded
            failed[place] = error
    if refuse_together and not known and not any(ready.values()):
        _refuse([error for error in failed.values() if isinstance(error, KernelmarkError)])
    done = known | {place: _failed(asked[place].path, error) for place, error in failed.items()}
    return _results(settings, ready, done, jobs, record=record)


def _refuse(errors: Sequence[KernelmarkError]) -> None:
    """Raise the error that several have in common, if there is one."""
    for message, count in Counter(map(str, errors)).most_common(1):
        if count > 1:
            raise next(error for error in errors if str(error) == message)


def _results(
    settings: Settings,
    ready: dict[DeviceKind, dict[int, AdmittedJob]],
    done: dict[int, GradingResult],
    jobs: int | None,
    *,
    record: bool,
) -> Iterator[tuple[int, GradingResult]]:
    from kernelmark.text.progress import BatchReporter

    with BatchReporter(len(done) + sum(map(len, ready.values()))) as reporter, Publisher(settings) as publisher:
        yield from _reported(reporter, iter(done.items()))
        for device, waiting in ready.items():
            graded = _graded(settings, device, waiting, jobs, reporter, publisher if record else None)
            yield from _reported(reporter, graded)


def _reported(
    reporter: BatchReporter, results: Iterator[tuple[int, GradingResult]]
) -> Iterator[tuple[int, GradingResult]]:
    for place, result in results:
        reporter.finished(result.path, result.outcome)
        with reporter.hidden():
            yield place, result


def _graded(
    settings: Settings,
    device: DeviceKind,
    ready: dict[int, AdmittedJob],
    jobs: int | None,
    reporter: BatchReporter,
    publisher: Publisher | None,
) -> Iterator[tuple[int, GradingResult]]:
    """Grade those of one kind of device; without a publisher, nothing is recorded."""
    from kernelmark.grading.fleet import Job
    from kernelmark.grading.fleet.one_by_one import several

    given = [Job(problem=one.job.problem, submission=one.job.submission, key=place) for place, one in ready.items()]
    left = dict(ready)
    try:
        with several(settings, device, jobs, count=len(given), on_progress=reporter.report) as grades:
            for result in grades.grade_many(given, effort=settings.effort, baselines=settings.baselines, reuse=False):
                place = result.job.key
                assert isinstance(place, int)
                yield place, _recorded(left.pop(place), result, publisher)
    except KernelmarkError as error:  # none could be graded, or no more
        for place, one in left.items():
            yield place, _failed(one.path, error)


def _recorded(ready: AdmittedJob, result: JobResult, publisher: Publisher | None) -> GradingResult:
    """The result for the report; its verdict is recorded if there is a publisher."""
    from kernelmark.grading.recorder import left_today, record, recorded

    path, verdict, table, left = ready.path, result.verdict, None, ""
    if verdict is None:
        assert result.error is not None
        return _failed(path, result.error)
    if publisher is not None:
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
    code, kept = verdict.outcome.exit_code, publisher is not None
    return GradingResult(path, code, verdict.message, verdict, table, left, recorded=kept)


def _failed(path: str, error: Exception, verdict: Verdict | None = None, *, recorded: bool = False) -> GradingResult:
    """The result of a submission that could not be graded, or not be recorded."""
    if isinstance(error, KernelmarkError):
        by_author = verdict is None and isinstance(error, SubmissionError)
        return GradingResult(path, error.exit_code, str(error), verdict, by_author=by_author, recorded=recorded)
    return GradingResult(path, HarnessError.exit_code, unexpected(error), verdict, recorded=recorded)
