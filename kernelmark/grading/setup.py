"""Reads a submission and its problem before anything starts, and calls the judge to check or grade it.

The Python API, the command line and a fleet's workers all grade through it. Trusted; it passes the submission's bytes
to the judge without interpreting them.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from harness import judge
from harness.device import DEVICES
from harness.errors import HarnessError, SubmissionError, UsageError
from harness.files.kept import Kept, cache_folder
from harness.judge import Grader, Progress, Setup
from harness.judge.setup import ignore
from harness.languages import LANGUAGES
from harness.problem import Problem
from harness.sandbox import Provider
from harness.submission import Submission
from harness.verdict import Check, DeviceKind, Stage, Verdict
from kernelmark.project.calibrations import stored
from kernelmark.project.choice import choose_device, choose_provider
from kernelmark.project.problems import find_baselines, find_problem, visible_test
from kernelmark.project.settings import Settings
from kernelmark.text.terminal import warn

if TYPE_CHECKING:
    from harness.judge.correctness.cases import OnFailure
    from harness.profiling.compilation import Compilation

OnProgress = Callable[[Progress], None]
ExtraFiles = Mapping[str, str] | Sequence[Path]
"""The other files of a submission: their sources by name, or their paths."""
T = TypeVar("T")
_NAMES_A_FILE = re.compile(rf"[^\n]{{1,4096}}\.({'|'.join(LANGUAGES)})")


@dataclass(frozen=True)
class PreparedJob:
    """One submission to one problem, read and validated; nothing has been started yet.

    `moment` decides whether the deadline has passed, and whether the final tests are part of the problem.
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
        beside: ExtraFiles = (),
        moment: datetime | None = None,
    ) -> PreparedJob:
        """Read the problem and the submission, without importing torch; `beside` as for `read_submission`.

        Raises:
            UsageError: the problem or the submission is missing or malformed.
        """
        for name, given, kind in (("problem", problem, Problem), ("submission", submission, Submission)):
            if not isinstance(given, str | Path | kind):
                what = f"is of the type {type(given).__name__}"
                raise UsageError(f"the {name}", what, f"give a str, a Path or a {kind.__name__}")
        moment = moment or datetime.now(UTC)
        loaded = find_problem(settings, problem, moment) if isinstance(problem, str | Path) else problem
        return cls(settings, loaded, read_submission(submission, author, language, beside), moment)

    @property
    def device(self) -> DeviceKind:
        """The device to grade on.

        Raises:
            UsageError: the problem has no case for it, or the language cannot run on the device of the settings.
            DeviceError: the settings require CUDA, and there is no device.
        """
        device = choose_device(self.settings.device, self.submission.language)
        if not any(device in case.devices for case in self.problem.tests):
            remedy = "it needs a GPU" if device == "cpu" else "use the device cpu"
            raise UsageError(f"problem {self.problem.slug}", f"has no case for {device}", remedy)
        return device

    @property
    def tests_for_gpus(self) -> int:
        """How many tests of the problem are skipped on this CPU because they need a GPU; 0 on a GPU."""
        return sum("cpu" not in case.devices for case in self.problem.tests) if self.device == "cpu" else 0

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
            UsageError: one of `only` is not a visible test.
            HarnessError: we failed twice, the second time in a fresh sandbox.
        """
        setup = self.setup(on_progress)
        for name in only:
            visible_test(self.problem, setup.device, name)
        setup = replace(setup, effort="default", on_failure=on_failure, only=only, fail_fast=fail_fast)
        return twice(lambda _: judge.check(setup))

    def grade(self, on_progress: OnProgress = ignore, baselines: Sequence[Submission] | None = None) -> Verdict:
        """Run the whole grading, in alternation with these baselines or, without any, those of the settings.

        Raises:
            HarnessError: we failed twice, the second time in fresh sandboxes.
        """
        setup = self.setup(on_progress)
        kernels = find_baselines(self.settings, self.problem, setup.device) if baselines is None else baselines
        setup = replace(setup, baselines=kernels, calibrations=stored(self.settings))
        return twice(lambda _: judge.grade(setup))

    def compilation(self, on_progress: OnProgress = ignore) -> Compilation | None:
        """Compile it with Triton without a GPU, as `harness.profiling.compilation`. A failure of ours is part of the
        result and not raised.
        """
        from harness.profiling.compilation import Compilation, compilation

        on_progress(Progress(Stage.BUILD, 0, 0, "for a GPU"))
        try:
            return compilation(self.problem, self.submission, choose_provider(self.settings))
        except HarnessError as error:
            return Compilation(DEVICES["cpu"].architecture(), unknown=str(error))

    def grader(self, run: str, provider: Provider, on_progress: OnProgress = ignore, **how: Any) -> Grader:
        """A grader, for a process that grades many; `run` is the verdict's id, and `how` holds more fields of `Setup`.
        Nothing is started.

        Raises:
            UsageError: the problem has no case for the device, or a baseline is missing.
            DeviceError: the device cannot be used here.
        """
        setup = self.setup(on_progress, provider)
        kernels, calibrations = find_baselines(self.settings, self.problem, setup.device), stored(self.settings)
        return Grader(replace(setup, baselines=kernels, calibrations=calibrations, run=run, keeps_memory=True, **how))

    def setup(self, on_progress: OnProgress, provider: Provider | None = None) -> Setup:
        """The judge's arguments, without baselines; `provider` replaces the sandbox of the settings."""
        device = self.device
        return Setup(
            self.problem,
            self.submission,
            provider=choose_provider(self.settings) if provider is None else provider,
            device=device,
            effort=self.settings.effort,
            on_progress=on_progress,
            kept=Kept(cache_folder(), self.settings.cache_bytes) if self.settings.cache_bytes else None,
        )


def twice(grade: Callable[[bool], T | None]) -> T:
    """Call `grade` with False. If that returns None, or fails for a reason of ours, call it once more with True."""
    try:
        if (result := grade(False)) is not None:
            return result
    except HarnessError as error:
        warn(f"{error}; trying once more")
    result = grade(True)
    assert result is not None
    return result


def read_submission(
    submission: str | Path | Submission, author: str, language: str = "py", beside: ExtraFiles = ()
) -> Submission:
    """Make a submission from source (`str`) or from a file (`Path`), or return it as it is.

    The other files are sources by file name if the submission is source, and paths if it is a path.

    A `str` is never opened as a file, since a model's answer could name any file. If it looks like a path, a warning
    says so.

    Raises:
        SubmissionError: as for `Submission.read` and `Submission.of`.
    """
    if isinstance(submission, Submission):
        if beside:
            raise SubmissionError("beside", "is given with a Submission", "give the files to `Submission.of` or `read`")
        return submission
    if isinstance(submission, Path):
        if isinstance(beside, Mapping | str):
            raise SubmissionError("beside", "is not a list of paths, as the submission is a path", "give Path objects")
        return Submission.read(submission, author, beside)
    if not isinstance(beside, Mapping):
        if beside:
            what = "is not a dictionary, as the submission is given as source"
            raise SubmissionError("beside", what, "give each file's source by its name")
        beside = {}
    if isinstance(submission, str) and _NAMES_A_FILE.fullmatch(submission):
        what = f"a str is taken as source, not as a path: pass Path({submission!r}) to grade that file"
        warnings.warn(what, stacklevel=4)
    return Submission.of(submission, language, author=author, beside=beside)
