"""Grades and reports all submissions of a branch or of a course: `kernelmark grade`. Trusted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, NamedTuple

from harness.submission import language_of
from kernelmark.course import report, submission_times
from kernelmark.course import roster as rosters
from kernelmark.course.changed import SubmittedFile, changed, refuse_strays
from kernelmark.course.gradings import AdmittedJob, GradingRequest, grade_all, printed
from kernelmark.course.kernel import Wanted
from kernelmark.course.mark import Mark
from kernelmark.course.points import Marking, total
from kernelmark.course.report import GradedDocument, GradingResult
from kernelmark.course.submissions import CourseSubmission, problem_of, submissions_in
from kernelmark.grading.recorder import admit, usual_s
from kernelmark.grading.setup import PreparedJob
from kernelmark.project.documents import print_document
from kernelmark.project.settings import Settings
from kernelmark.record.allowance import Allowance
from kernelmark.record.lateness import Remark
from kernelmark.text.terminal import counted, print_lines, say

if TYPE_CHECKING:
    from harness.problem import Problem
    from harness.problem.schedule import Delay
    from harness.submission import Submission
    from kernelmark.course.marks import Reports
    from kernelmark.course.recorded import RecordedVerdicts


@dataclass(frozen=True)
class GradeOptions:
    """The options of one command, which apply to all its submissions."""

    settings: Settings
    record: bool
    late: str | None = None
    """The organizer who admits the submissions although the problem is closed."""
    recorded: RecordedVerdicts | None = None
    """The verdicts that are not graded again; None: everything is graded."""
    now: datetime = field(default_factory=lambda: datetime.now(UTC))
    """When the command began; all submissions count as read at this moment."""

    def prepare(
        self,
        path: str,
        problem: Path | Problem,
        submission: Submission,
        admit_job: Callable[[PreparedJob], Remark | None],
        *,
        exempt: bool = False,
    ) -> AdmittedJob | GradingResult:
        """Admit a submission, or return its result if that is recorded already."""
        job = PreparedJob.prepare(self.settings, problem, submission, author=submission.author, moment=self.now)
        known = self.recorded.same(path, job) if self.recorded is not None else None
        return known or AdmittedJob(job, admit_job(job), exempt)


class GradingBatch(NamedTuple):
    """The submissions to grade. For those of a course also who submitted them, and how late, if that is known."""

    requests: list[GradingRequest]
    submitted: list[tuple[CourseSubmission, Delay | None]]
    absent: Sequence[Mark] = ()
    """The marks of people who submitted nothing."""
    marking: Marking | None = None
    """The rule for points, if there is one."""

    def grade(self, options: GradeOptions, reports: Reports, jobs: int | None, form: str) -> int:
        """Grade all of them, print each in this form and write the reports; returns the exit status."""
        interrupted = "the command was interrupted before its turn"
        results = [GradingResult(request.path, report.INTERRUPTED, interrupted) for request in self.requests]

        def marks(places: Iterable[int]) -> list[Mark]:
            return [mark for place in places for mark in self._marks(place, results[place])]

        def all_marks() -> list[Mark]:
            return [*marks(range(len(results))), *self.absent]

        def line(place: int, result: GradingResult) -> list[str]:
            submitted, _ = self.submitted[place]
            return [self._marks(place, result)[0].line(of_team=submitted.team is not None and not submitted.teammates)]

        course = bool(self.submitted)
        quiet = course and form == "table"
        graded = grade_all(
            options.settings, self.requests, jobs, record=options.record, refuse_together=course, quiet=quiet
        )
        try:
            for place, result in printed(graded, form, line if course else None):
                results[place] = result
                reports.keep(all_marks(), marks([place]))
        finally:  # what was graded before an interruption is recorded, and must be reported
            if form == "json":
                print_document("grade", [self._document(place, result) for place, result in enumerate(results)])
            elif not results:
                print_lines(["no submission was added or changed"])
            reports.write(results, all_marks(), "submission")
        return report.worst(results)

    def _marks(self, place: int, result: GradingResult) -> list[Mark]:
        """The marks that follow from one result; none for the submissions of a branch."""
        if not self.submitted:
            return []
        submitted, delay = self.submitted[place]
        return submitted.marks(delay, result, self.marking)

    def _document(self, place: int, result: GradingResult) -> GradedDocument:
        if not self.submitted:
            return result.document(self.requests[place].author)
        submitted, delay = self.submitted[place]
        team = submitted.team.name if submitted.team else ""
        parts = self._marks(place, result)[0].parts
        points = total(parts).points if parts else None
        return result.document(submitted.author, submitted.owner.id, team, delay, points)


def of_branch(options: GradeOptions, base: str, head: str, only: str | None, *, allow_other: bool) -> GradingBatch:
    """The submissions that a branch adds or changes; with `only` it may change nothing outside that author's folders.

    The daily limits apply even if nothing is recorded: they count what the record at the base has.

    Raises:
        UsageError: git does not know the commits, or the branch changes what it may not.
    """
    settings, allowance = options.settings, Allowance(options.settings)
    files = changed(settings, base, head)
    if only is not None:
        refuse_strays(settings, base, head, only, allowed=allow_other)

    def admit_job(job: PreparedJob) -> Remark | None:
        if options.record:
            return admit(job, options.late, allowance)
        allowance.take(job.submission.author, lambda: usual_s(job))
        return None

    def read(file: SubmittedFile) -> AdmittedJob | GradingResult:
        return options.prepare(file.path, *file.read(settings), admit_job)

    return GradingBatch([GradingRequest(file.path, partial(read, file), file.author(settings)) for file in files], [])


def of_course(
    options: GradeOptions, problem: str, place: Path, *, handed_in: str | None, file: str | None, roster: Path | None
) -> GradingBatch:
    """The submissions to a problem in a folder or an archive.

    They are exempt from the daily limits, since an organizer wants them graded.

    Args:
        handed_in: when they were submitted, as the organizer states it.
        file: how the kernel's file should be called; None: as the problem says.
        roster: the list of everyone in the course.

    Raises:
        UsageError: the place, the times or the roster cannot be read, or the times are unknown and needed.
    """
    settings, late = options.settings, options.late
    loaded = problem_of(settings, problem, place, options.now)  # raises once, instead of for each submission
    needed = options.record and late is None
    submitted_at = submission_times.submission_times(handed_in, loaded, options.now, needed=needed)

    def read(submitted: CourseSubmission) -> AdmittedJob | GradingResult:
        admit_job: Callable[[PreparedJob], Remark | None] = _not_recorded
        if options.record:
            admit_job = partial(admit, late=late, handed_in=submitted_at(submitted), exempt=True)
        return options.prepare(submitted.path, problem_for(submitted), submitted.submission(), admit_job, exempt=True)

    def problem_for(submitted: CourseSubmission) -> Problem:
        return submitted.person.problem(loaded) if submitted.person else loaded

    file = file or (loaded.submission.file if loaded.submission else "")
    if file:
        language_of(PurePath(file))
    people = rosters.read(roster, loaded) if roster is not None else rosters.NOBODY
    teams, marking = people.teams(settings.teams), Marking.of(settings, loaded)
    submissions = submissions_in(place, teams, Wanted(loaded.entry, file), people)
    for submitted in submissions:
        for remark in submitted.remarks:
            say(f"kernelmark: note: {submitted.author}: {remark}")
    delays = [submission_times.delay(problem_for(submitted), submitted, submitted_at) for submitted in submissions]
    if late is None and submissions and not any(delays):
        schedule = loaded.schedule_at(options.now)
        say(f"kernelmark: note: {loaded.slug}: {schedule}; --handed-in says how late each one was")
    present = {author for submitted in submissions for author in submitted.authors}
    missing = [person for author, person in people.authors.items() if author not in present]
    if missing:
        say(f"kernelmark: note: {counted(len(missing), 'person', 'people')} of the roster handed in nothing")
    absent = [person.absent(teams.of(person.author), marking) for person in missing]
    requests = [GradingRequest(submitted.path, partial(read, submitted), submitted.author) for submitted in submissions]
    return GradingBatch(requests, list(zip(submissions, delays, strict=True)), absent, marking)


def _not_recorded(_: PreparedJob) -> None:
    """Admit a job that is not recorded, which needs no check."""
