"""One submission to one problem, read and checked before anything starts; then graded, and recorded.

The Python API, the command line and a fleet's workers all grade through it. Trusted; the submission's bytes are passed
to the judge, never interpreted.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar

from harness import judge
from harness.device import DEVICES
from harness.errors import HarnessError, SubmissionError, UsageError
from harness.files.outside import real
from harness.judge import Grader, Progress
from harness.judge.progress import ignore
from harness.languages import LANGUAGES
from harness.problem import Problem
from harness.problem.load import identify
from harness.problem.schedule import shown
from harness.sandbox import Provider
from harness.submission import Submission
from harness.verdict import Check, DeviceKind, Stage, Verdict
from kernelmark.project.calibrations import stored
from kernelmark.project.choice import choose_device, choose_provider
from kernelmark.project.problems import (
    find_baselines,
    find_problem,
    private_folder,
    refuse_without_project,
    visible_test,
)
from kernelmark.project.settings import Settings
from kernelmark.record.allowance import Allowance
from kernelmark.record.publishing import publish, table_of
from kernelmark.record.recording import record
from kernelmark.record.records import ledger, usual_s
from kernelmark.text.terminal import warn
from leaderboard.record.archive import refuse_if_unwritable
from leaderboard.record.moderation import Moderation
from leaderboard.standings.ranking import Table

if TYPE_CHECKING:
    from harness.judge.correctness.cases import OnFailure
    from harness.profiling.compilation import Compilation

OnProgress = Callable[[Progress], None]
Beside = Mapping[str, str] | Sequence[Path]
"""The files beside a submission: their sources by name, or their paths."""
T = TypeVar("T")
_NAMES_A_FILE = re.compile(rf"[^\n]{{1,4096}}\.({'|'.join(LANGUAGES)})")


POLICY = "late policy"
"""The actor of the events that follow from a problem's own `late`, without an organizer."""


@dataclass(frozen=True)
class Remark:
    """What is recorded beside a verdict about when its submission was handed in, and who says so.

    With the action `late` the run does not rank; `annotate` explains why a run that was graded late does.
    """

    action: Literal["late", "annotate"]
    actor: str
    reason: str

    def event(self, run: str) -> Moderation:
        """The moderation event about this run; it is recorded with the verdict.

        Raises:
            ValueError: the actor's name is not valid.
        """
        now = datetime.now(UTC)
        return Moderation(run=run, action=self.action, actor=self.actor, reason=self.reason, created_at=now)


@dataclass(frozen=True)
class PreparedJob:
    """One submission to one problem, read and validated; nothing has been started yet.

    `moment` is the one that counts for the deadline, and for whether the final tests are part of the problem.
    """

    settings: Settings
    problem: Problem
    submission: Submission
    moment: datetime = field(default_factory=lambda: datetime.now(UTC))

    @classmethod
    def prepare(
        cls,
        settings: Settings,
        problem: str | Path | Problem,
        submission: str | Path | Submission,
        *,
        author: str,
        language: str = "py",
        beside: Beside = (),
        moment: datetime | None = None,
    ) -> PreparedJob:
        """Read the problem and the submission, without importing torch; `beside` as for `read_submission`. The default
        `moment` is now.

        Raises:
            UsageError: the problem or the submission is missing or malformed.
        """
        moment = moment or datetime.now(UTC)
        loaded = find_problem(settings, problem, moment) if isinstance(problem, str | Path) else problem
        return cls(settings, loaded, read_submission(submission, author, language, beside), moment)

    def check(
        self,
        on_progress: OnProgress = ignore,
        on_failure: OnFailure | None = None,
        only: Collection[str] = (),
        *,
        fail_fast: bool = False,
    ) -> Check:
        """Build and test, as `harness.judge.check`.

        Raises:
            UsageError: one of `only` is not a test that is shown.
            HarnessError: we failed twice, the second time in a fresh sandbox.
        """
        device, provider = self.device, choose_provider(self.settings)
        for name in only:
            visible_test(self.problem, device, name)
        return twice(
            partial(
                judge.check,
                self.problem,
                self.submission,
                provider=provider,
                device=device,
                on_progress=on_progress,
                on_failure=on_failure,
                only=only,
                fail_fast=fail_fast,
            )
        )

    def grade(self, on_progress: OnProgress = ignore, baselines: Sequence[Submission] | None = None) -> Verdict:
        """The whole grading, in alternation with these kernels, or with those of the settings.

        Raises:
            HarnessError: we failed twice, the second time in fresh sandboxes.
        """
        device, provider = self.device, choose_provider(self.settings)
        return twice(
            partial(
                judge.grade,
                self.problem,
                self.submission,
                provider=provider,
                device=device,
                effort=self.settings.effort,
                baselines=find_baselines(self.settings, self.problem, device) if baselines is None else baselines,
                calibrations=stored(self.settings),
                on_progress=on_progress,
            )
        )

    def compilation(self, on_progress: OnProgress = ignore) -> Compilation | None:
        """What Triton's compiler makes of it, without a GPU, as `harness.profiling.compilation`; never raises for a
        reason of ours, since the result stands without it.
        """
        from harness.profiling.compilation import Compilation, compilation

        on_progress(Progress(Stage.BUILD, 0, 0, "for a GPU"))
        try:
            return compilation(self.problem, self.submission, choose_provider(self.settings))
        except HarnessError as error:
            return Compilation(DEVICES["cpu"].architecture(), unknown=str(error))

    def grader(self, run: str, provider: Provider, on_progress: OnProgress = ignore) -> Grader:
        """The judge's part of a grading in a process that grades many; `run` is the verdict's id. Nothing is started.

        Raises:
            UsageError: the problem has no case for the device, or a baseline is not there.
            DeviceError: the device cannot be used here.
        """
        device = self.device
        return Grader(
            self.problem,
            self.submission,
            provider=provider,
            device=device,
            effort=self.settings.effort,
            baselines=find_baselines(self.settings, self.problem, device),
            calibrations=stored(self.settings),
            on_progress=on_progress,
            run=run,
            keeps_memory=True,
        )

    def admit(
        self,
        late: str | None = None,
        allowance: Allowance | None = None,
        *,
        handed_in: datetime | None = None,
        exempt: bool = False,
    ) -> Remark | None:
        """Check, before the grading, that its verdict may and can be recorded: the problem is open, the ledger and the
        archive can be written, the problem is the project's own, not another one of the same name, and the author is
        within the limits a day, unless it is `exempt` from them.

        `late` names the organizer who admits it although the problem is closed. `handed_in` is when it was submitted,
        if not now. `allowance` is that of the command, if it admits several. Returns what is to be recorded with the
        verdict; None if there is nothing to remark.

        Raises:
            UsageError: the problem is closed, or is not the project's, a limit is reached, or nothing can be recorded
                there.
            LedgerError: the ledger is broken.
        """
        own, given = self.settings.locate("problems") / self.problem.slug, self.problem.directory
        remedy = "name the problem by its slug, or grade without recording (--no-record)"
        if self.settings.effort == "screen":
            what = "times one benchmark case, and so cannot rank"
            raise UsageError("effort screen", what, "grade without recording, or with the effort quick")
        if (own / "problem.toml").is_file() and real(own) != real(given):
            raise UsageError(str(given), f"is not the project's problem of this name, {own}", remedy)
        if identify(given, private_folder(self.settings), self.moment) != self.problem.sha256:
            raise UsageError(str(given), "was loaded without the project's private cases, or has changed since", remedy)
        refuse_without_project(self.settings)
        ledger(self.settings, self.problem.slug).refuse_if_broken()
        refuse_if_unwritable(self.settings.locate("archive"), self.problem.slug, self.submission)
        remark = self._remark(late, handed_in or self.moment)
        if not exempt:
            (allowance or Allowance(self.settings)).take(self.submission.author, self.usual_s)
        return remark

    def _remark(self, late: str | None, handed_in: datetime) -> Remark | None:
        """What the schedule says of a submission that was handed in at that moment; raises as `admit`."""
        problem = self.problem
        delay, now = problem.delay(handed_in), problem.delay(self.moment)
        if not now.days:
            return None
        assert problem.deadline is not None  # else nothing is late
        when, deadline = shown(delay.handed_in), shown(problem.deadline)
        if not delay.days:
            who = self.settings.author_or_default()
            return Remark("annotate", who, f"graded after the deadline, but handed in on time, {when}")
        if late is None and problem.closed(handed_in):
            what = f"takes no more submissions, {problem.schedule_at(handed_in)}"
            remedy = "record it as late (--late NAME), or grade without recording (--no-record)"
            raise UsageError(f"problem {problem.slug}", what, remedy)
        reason = f"{delay}: handed in {when}, deadline {deadline}"
        remark = Remark("late", POLICY if late is None else late, reason)
        try:
            remark.event("0" * 16)  # validates the name before the grading spends its time
        except ValueError as error:
            raise UsageError("--late", f"{late!r} is not a valid name", "give one of up to 100 characters") from error
        return remark

    def left_today(self) -> str:
        """What the limits a day leave to the author, in words; empty if there are none, or a ledger cannot be read."""
        with suppress(HarnessError):  # what reads the ledger next tells it
            return Allowance(self.settings).left(self.submission.author)
        return ""

    def usual_s(self) -> float | None:
        """How long such a grading took before, in seconds, if the project's ledger tells."""
        return usual_s(self.settings, self.problem.slug, self.device, self.submission.language)

    def recorded(self, run: str) -> Verdict | None:
        """The verdict of this run, if the project's ledger has it.

        Raises:
            LedgerError: the ledger is broken.
        """
        return ledger(self.settings, self.problem.slug).find(run)

    def record(self, verdict: Verdict, remark: Remark | None = None, *, exempt: bool = False) -> None:
        """Record the verdict in the project, with what `admit` returned; `publish` writes the board.

        One that is `exempt` does not count towards its author's limits a day.

        Raises:
            HarnessError: as for `kernelmark.record.recording.record`.
        """
        event = remark.event(verdict.run) if remark else None
        record(self.settings, self.submission, verdict, event, exempt=exempt)

    def publish(self, verdict: Verdict) -> Table | None:
        """Write the board after a verdict was recorded; returns the table of an accepted one.

        Raises:
            HarnessError: as for `kernelmark.record.publishing.publish`.
        """
        return table_of(publish(self.settings, self.problem.slug), verdict)

    @property
    def device(self) -> DeviceKind:
        """The device to grade on.

        Raises:
            UsageError: the problem has no case for it, or the language cannot run on the device that was asked for.
            DeviceError: CUDA was asked for, and there is no device.
        """
        device = choose_device(self.settings.device, self.submission.language)
        if not any(device in case.devices for case in self.problem.tests):
            raise UsageError(f"problem {self.problem.slug}", f"has no case for {device}", "choose another --device")
        return device

    @property
    def tests_for_gpus(self) -> int:
        """How many tests of the problem are left out here, on a CPU, because they run on a GPU alone."""
        return sum("cpu" not in case.devices for case in self.problem.tests) if self.device == "cpu" else 0


def twice(grade: Callable[[], T], again: Callable[[], T] | None = None) -> T:
    """Grade, and once more, or `again`, if that fails for a reason of ours, which may be transient."""
    try:
        return grade()
    except HarnessError as error:
        warn(f"{error}; trying once more")
        return (again or grade)()


def read_submission(
    given: str | Path | Submission, author: str, language: str = "py", beside: Beside = ()
) -> Submission:
    """A submission from source (`str`), from a file (`Path`), or as it is.

    The files beside it are given in the same way: sources by file name with a source, paths with a path.

    A `str` is never opened as a file, since a model's answer could name any file. If it looks like a path, a warning
    says so.

    Raises:
        SubmissionError: as for `Submission.read` and `Submission.of`.
    """
    if isinstance(given, Submission):
        if beside:
            raise SubmissionError("beside", "is given with a Submission", "give the files to `Submission.of` or `read`")
        return given
    if isinstance(given, Path):
        if isinstance(beside, Mapping | str):
            raise SubmissionError("beside", "is not a list of paths, as the submission is a path", "give Path objects")
        return Submission.read(given, author, beside)
    if not isinstance(beside, Mapping):
        if beside:
            what = "is not a dictionary, as the submission is given as source"
            raise SubmissionError("beside", what, "give each file's source by its name")
        beside = {}
    if isinstance(given, str) and _NAMES_A_FILE.fullmatch(given):
        warnings.warn(f"a str is taken as source, not as a path: pass Path({given!r}) to grade that file", stacklevel=4)
    return Submission.of(given, language, author=author, beside=beside)
