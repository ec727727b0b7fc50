"""Grades and reports all submissions of a branch or of a course: `kernelmark grade`. Trusted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, NamedTuple

from harness.submission import language_of
from kernelmark.course import moments, report
from kernelmark.course import roster as rosters
from kernelmark.course.changed import SubmittedFile, changed, refuse_strays
from kernelmark.course.kernel import Wanted
from kernelmark.course.marked import Marked
from kernelmark.course.points import Marking, total
from kernelmark.course.report import GradedDocument, GradingResult
from kernelmark.course.several import AdmittedJob, GradingRequest, grade_all, printed
from kernelmark.course.submissions import CourseSubmission, marked, problem_of, submissions_in
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
    from kernelmark.course.known import KnownVerdicts
    from kernelmark.course.marks import Reports


@dataclass(frozen=True)
class Terms:
    """How one command treats all its submissions.

    `late` is the organizer who admits them although the problem is closed. What is `known` is not graded again. All
    count as read at the moment `now`, when the command began.
    """

    settings: Settings
    record: bool
    late: str | None = None
    known: KnownVerdicts | None = None
    now: datetime = field(default_factory=lambda: datetime.now(UTC))

    def ready(
        self,
        path: str,
        problem: Path | Problem,
        submission: Submission,
        admitted: Callable[[PreparedJob], Remark | None],
        *,
        exempt: bool = False,
    ) -> AdmittedJob | GradingResult:
        """Admit a submission that was read, or return its result if its verdict is known already."""
        job = PreparedJob.prepare(self.settings, problem, submission, author=submission.author, moment=self.now)
        known = self.known.same(path, job) if self.known is not None else None
        return known or AdmittedJob(job, admitted(job), exempt)


class CourseBatch(NamedTuple):
    """Submissions to grade. For those of a course also who handed them in, and how late; None if that is not known."""

    asked: list[GradingRequest]
    submitted: list[tuple[CourseSubmission, Delay | None]]
    absent: Sequence[Marked] = ()
    """The marks of those who handed in nothing."""
    marking: Marking | None = None
    """The rule for points, if there is one."""

    def grade(self, terms: Terms, reports: Reports, jobs: int | None, form: str) -> int:
        """Grade all of them, print each in the given form and write the reports; returns the exit status."""
        every = [
            GradingResult(asked.path, report.INTERRUPTED, "the command was interrupted before its turn")
            for asked in self.asked
        ]

        def marks(places: Iterable[int]) -> list[Marked]:
            found = (one for place in places if self.submitted for one in marked(*self.submitted[place], every[place]))
            return [one._replace(marking=self.marking) for one in found]

        absent = [one._replace(marking=self.marking) for one in self.absent]

        def line(place: int, result: GradingResult) -> list[str]:
            submitted, delay = self.submitted[place]
            mark = next(marked(submitted, delay, result))._replace(marking=self.marking)
            return [mark.line(of_team=submitted.team is not None and not submitted.teammates)]

        course = bool(self.submitted)
        quiet = course and form == "table"
        results = grade_all(terms.settings, self.asked, jobs, record=terms.record, refuse_together=course, quiet=quiet)
        try:
            for place, result in printed(results, form, line if course else None):
                every[place] = result
                reports.keep([*marks(range(len(every))), *absent], marks([place]))
        finally:  # what was graded before an interruption is recorded, and must be reported
            if form == "json":
                print_document("grade", [self._document(place, result) for place, result in enumerate(every)])
            elif not every:
                print_lines(["no submission was added or changed"])
            reports.write(every, [*marks(range(len(every))), *absent], "submission")
        return report.worst(every)

    def _document(self, place: int, result: GradingResult) -> GradedDocument:
        if not self.submitted:
            return result.document(self.asked[place].author)
        submitted, delay = self.submitted[place]
        team = submitted.team.name if submitted.team else ""
        mark = next(marked(submitted, delay, result))._replace(marking=self.marking)
        points = total(mark.parts).points if mark.parts else None
        return result.document(submitted.author, submitted.owner.id, team, delay, points)


def of_branch(terms: Terms, base: str, head: str, only: str | None, *, allow_other: bool) -> CourseBatch:
    """What a branch adds or changes; `only` names the author outside of whose folders it may change nothing.

    The limits a day hold even if nothing is recorded: then the record of the base says what was used.

    Raises:
        UsageError: git does not know the commits, or the branch changes what it may not.
    """
    settings, allowance = terms.settings, Allowance(terms.settings)
    found = changed(settings, base, head)
    if only is not None:
        refuse_strays(settings, base, head, only, allowed=allow_other)

    def admitted(job: PreparedJob) -> Remark | None:
        if terms.record:
            return admit(job, terms.late, allowance)
        allowance.take(job.submission.author, lambda: usual_s(job))
        return None

    def read(file: SubmittedFile) -> AdmittedJob | GradingResult:
        return terms.ready(file.path, *file.read(settings), admitted)

    return CourseBatch([GradingRequest(file.path, partial(read, file), file.author(settings)) for file in found], [])


def of_course(
    terms: Terms, problem: str, place: Path, *, handed_in: str | None, file: str | None, roster: Path | None
) -> CourseBatch:
    """The submissions to a problem that are in a folder or an archive; `handed_in` says when, as an organizer gives it,
    `file` how the kernel's file should be called (by default as the problem says), and `roster` who is in the course.

    They are exempt from the limits a day, since an organizer wants them graded.

    Raises:
        UsageError: the place or the moments cannot be read, or it is not known when they were submitted, and matters.
    """
    settings, late = terms.settings, terms.late
    loaded = problem_of(settings, problem, place, terms.now)  # else each submission would be refused for the problem
    when = moments.moments(handed_in, loaded, terms.now, needed=terms.record and late is None)

    def read(submitted: CourseSubmission) -> AdmittedJob | GradingResult:
        admitted = partial(admit, late=late, handed_in=when(submitted), exempt=True) if terms.record else _unrecorded
        return terms.ready(submitted.path, own(submitted), submitted.submission(), admitted, exempt=True)

    def own(submitted: CourseSubmission) -> Problem:
        return submitted.person.problem(loaded) if submitted.person else loaded

    file = file or (loaded.submission.file if loaded.submission else "")
    if file:
        language_of(PurePath(file))
    people = rosters.read(roster, loaded) if roster is not None else rosters.NOBODY
    teams = people.teams(settings.teams)
    submissions = submissions_in(place, teams, Wanted(loaded.entry, file), people)
    for submitted in submissions:
        for remark in submitted.remarks:
            say(f"kernelmark: note: {submitted.author}: {remark}")
    found = [(submitted, moments.delay(own(submitted), submitted, when)) for submitted in submissions]
    if late is None and found and not any(delay for _, delay in found):
        say(f"kernelmark: note: {loaded.slug}: {loaded.schedule_at(terms.now)}; --handed-in says how late each one was")
    present = {author for submitted in submissions for author in submitted.authors}
    absent = [
        person.handed_in_nothing(teams.of(author)) for author, person in people.authors.items() if author not in present
    ]
    if absent:
        say(f"kernelmark: note: {counted(len(absent), 'person', 'people')} of the roster handed in nothing")
    requests = [GradingRequest(one.path, partial(read, one), one.author) for one, _ in found]
    return CourseBatch(requests, found, absent, Marking.of(settings, loaded))


def _unrecorded(_: PreparedJob) -> None:
    """What admits a submission that is graded without being recorded."""
