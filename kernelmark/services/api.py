"""Grading from Python and from the command line: find the problem, read the submission, grade, record.

`grade` and `check` are public; the command line prepares a `Job` itself, to report usage errors before torch is
imported. Trusted; the submission's bytes are passed to the judge, never interpreted.
"""

from __future__ import annotations

import ctypes
import importlib.util
import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from harness import judge
from harness import sandbox as sandboxes
from harness.errors import DeviceError, HarnessError, UsageError
from harness.judge import Progress
from harness.kinds import isolates
from harness.languages import LANGUAGES
from harness.problem import Problem
from harness.problem.load import identify
from harness.sandbox import Provider
from harness.submission import Submission
from harness.verdict import Check, DeviceKind, Effort, Verdict
from kernelmark.services.calibrations import stored
from kernelmark.services.problems import find_baselines, find_problem, private_folder
from kernelmark.services.recording import record
from kernelmark.services.settings import DeviceChoice, SandboxChoice, Settings
from kernelmark.text.terminal import warn
from leaderboard.record.archive import refuse_if_unwritable
from leaderboard.record.ledger import JsonlLedger
from leaderboard.record.moderation import Moderation
from leaderboard.standings.ranking import Table

OnProgress = Callable[[Progress], None]
T = TypeVar("T")
_NAMES_A_FILE = re.compile(rf"[^\n]{{1,4096}}\.({'|'.join(LANGUAGES)})")


def grade(
    problem: str | Path | Problem,
    submission: str | Path | Submission,
    *,
    author: str = "anonymous",
    device: DeviceChoice = "auto",
    sandbox: SandboxChoice = "auto",
    language: str = "py",
    effort: Effort | None = None,
    baselines: Sequence[str] | None = None,
    on_progress: OnProgress | None = None,
    record: bool = False,
) -> Verdict:
    """Grade one submission: build it, run the tests, and time the benchmarks.

    The verdict's `outcome` says what the submission did wrong; only bad input and our own failures are raised.

    Args:
        problem: a problem's directory, its slug below the project's `problems`, or a loaded `Problem`.
        submission: the source itself (`str`), a file (`Path`), or a `Submission`.
        author: who wrote it; a `Submission` has its own author.
        device: "cpu", "cuda", or "auto": the project's setting, else CUDA if there is a device.
        sandbox: "docker", "bwrap", "process", or "auto": the project's setting, else the strongest that works.
        language: the language of a submission given as source.
        effort: "quick", "default" or "thorough": the budget of every benchmark case; None: the project's setting.
        baselines: names of kernels in `reference/<slug>/` to alternate with; None: the project's setting, else `eager`
            on a GPU if the problem has it, unless the effort is quick.
        on_progress: called with a `harness.judge.Progress` before every step.
        record: archive the source, append the verdict to the project's ledger and rewrite its board.

    Raises:
        UsageError: the problem, the submission or a setting is wrong.
        HarnessError: we failed, twice; the verdict is unknown and nothing was recorded.
    """
    settings = _settings(device, sandbox, effort=effort, baselines=baselines)
    job = Job.prepare(settings, problem, submission, author=author, language=language)
    if record:
        job.admit()
    verdict = job.grade(on_progress)
    if record:
        job.record(verdict)
    return verdict


def check(
    problem: str | Path | Problem,
    submission: str | Path | Submission,
    *,
    author: str = "anonymous",
    device: DeviceChoice = "auto",
    sandbox: SandboxChoice = "auto",
    language: str = "py",
    on_progress: OnProgress | None = None,
) -> Check:
    """Build one submission and run its tests, without times; arguments and exceptions as for `grade`."""
    job = Job.prepare(_settings(device, sandbox), problem, submission, author=author, language=language)
    return job.check(on_progress)


@dataclass(frozen=True)
class Lateness:
    """Records that a grading began after the deadline, and which organizer allowed it."""

    actor: str
    reason: str

    def event(self, run: str) -> Moderation:
        """The moderation event that keeps this run from ranking; it is recorded with the verdict.

        Raises:
            ValueError: the actor's name is not valid.
        """
        now = datetime.now(UTC)
        return Moderation(run=run, action="late", actor=self.actor, reason=self.reason, created_at=now)


@dataclass(frozen=True)
class Job:
    """One submission to one problem, read and validated; nothing has been started yet."""

    settings: Settings
    problem: Problem
    submission: Submission

    @classmethod
    def prepare(
        cls,
        settings: Settings,
        problem: str | Path | Problem,
        submission: str | Path | Submission,
        *,
        author: str,
        language: str = "py",
    ) -> Job:
        """Read the problem and the submission, without importing torch.

        Raises:
            UsageError: the problem or the submission is missing or malformed.
        """
        loaded = find_problem(settings, problem) if isinstance(problem, str | Path) else problem
        return cls(settings, loaded, read_submission(submission, author, language))

    def check(self, on_progress: OnProgress | None = None) -> Check:
        """Build and test.

        Raises:
            HarnessError: we failed twice, the second time in a fresh sandbox.
        """
        provider, device = self._place()

        return self._twice(partial(judge.check, provider=provider, device=device), on_progress)

    def grade(self, on_progress: OnProgress | None = None) -> Verdict:
        """The whole grading.

        Raises:
            HarnessError: we failed twice, the second time in fresh sandboxes.
        """
        provider, device = self._place()
        grade_once = partial(
            judge.grade,
            provider=provider,
            device=device,
            effort=self.settings.effort,
            baselines=find_baselines(self.settings, self.problem, device),
            calibrations=stored(self.settings),
        )
        return self._twice(grade_once, on_progress)

    def admit(self, late: str | None = None) -> Lateness | None:
        """Check, before the grading, that its verdict may and can be recorded: the deadline has not passed, the ledger
        and the archive can be written, and the problem is the project's own, not another one of the same name.

        `late` names the organizer who admits it after the deadline; then the returned `Lateness` keeps it from ranking.
        Returns None before the deadline.

        Raises:
            UsageError: the deadline has passed, or the problem is not the project's.
            LedgerError: the ledger cannot be appended to.
            HarnessError: the source cannot be archived.
        """
        own, given = self.settings.locate("problems") / self.problem.slug, self.problem.directory
        remedy = "name the problem by its slug, or grade without recording (--no-record)"
        if (own / "problem.toml").is_file() and own.resolve() != given.resolve():
            raise UsageError(str(given), f"is not the project's problem of this name, {own}", remedy)
        if identify(given, private_folder(self.settings)) != self.problem.sha256:
            raise UsageError(str(given), "was loaded without the project's private cases, or has changed since", remedy)
        JsonlLedger(self.settings.locate("results") / f"{self.problem.slug}.jsonl").refuse_if_broken()
        refuse_if_unwritable(self.settings.locate("archive"), self.problem.slug, self.submission)
        if self.problem.deadline is None or not self.problem.closed(datetime.now(UTC)):
            return None
        what = f"its deadline passed on {self.problem.deadline.isoformat(sep=' ')}"
        if late is None:
            raise UsageError(f"problem {self.problem.slug}", what, "grade without recording (--no-record)")
        lateness = Lateness(late, what)
        try:
            lateness.event("0" * 16)  # validates the name before the grading spends its time
        except ValueError as error:
            raise UsageError("--late", f"{late!r} is not a valid name", "give one of up to 100 characters") from error
        return lateness

    def record(self, verdict: Verdict, lateness: Lateness | None = None) -> Table | None:
        """Record the verdict in the project; returns the table that an accepted one belongs to.

        Raises:
            HarnessError: as for `kernelmark.services.recording.record`.
        """
        return record(self.settings, self.submission, verdict, lateness.event(verdict.run) if lateness else None)

    def _place(self) -> tuple[Provider, DeviceKind]:
        """The sandbox and device to grade with; refuses a device for which the problem has no case."""
        device = choose_device(self.settings.device, self.submission.language)
        if not any(device in case.devices for case in self.problem.tests):
            raise UsageError(f"problem {self.problem.slug}", f"has no case for {device}", "choose another --device")
        return choose_provider(self.settings), device

    def _twice(self, judge: Callable[..., T], on_progress: OnProgress | None) -> T:
        """Call the judge, and once more if it fails for a reason of ours, which may be transient."""
        call = partial(judge, self.problem, self.submission, on_progress=on_progress or _silent)
        try:
            return call()
        except HarnessError as error:
            warn(f"{error}; trying once more")
            return call()


def read_submission(given: str | Path | Submission, author: str, language: str = "py") -> Submission:
    """A submission from source (`str`), from a file (`Path`), or as it is.

    A `str` is never opened as a file, since a model's answer could name any file. If it looks like a path, a warning
    says so.

    Raises:
        SubmissionError: as for `Submission.read` and `Submission.of`.
    """
    if isinstance(given, Submission):
        return given
    if isinstance(given, Path):
        return Submission.read(given, author)
    if isinstance(given, str) and _NAMES_A_FILE.fullmatch(given):
        warnings.warn(f"a str is taken as source, not as a path: pass Path({given!r}) to grade that file", stacklevel=4)
    return Submission.of(given, language, author=author)


def choose_device(choice: DeviceChoice, language: str) -> DeviceKind:
    """The device for a submission: the requested one, else CUDA if there is a device and the language can use it.

    A `.cu` file without a CUDA device is judged on the CPU: it is compiled, then refused with the reason.

    Raises:
        UsageError: the language cannot run on the requested device.
        DeviceError: CUDA was requested, and there is no device.
    """
    if "cuda" not in LANGUAGES[language].devices:
        if choice == "cuda":
            raise UsageError("--device cuda", f"a .{language} file runs on a CPU", "leave --device out")
        return "cpu"
    if choice == "cpu":
        return "cpu"
    if not cuda_is_here():
        if choice == "auto":
            return "cpu"
        remedy = "`kernelmark doctor` says why; a .py file can be graded with --device cpu"
        raise DeviceError("there is no CUDA device that torch could use", remedy)
    return "cuda"


def cuda_is_here() -> bool:
    """The answer of `torch.cuda.is_available()`, without the two seconds that importing torch takes.

    It asks the driver for its devices (respecting `CUDA_VISIBLE_DEVICES`), and looks for the files of a CUDA build of
    torch.
    """
    torch = importlib.util.find_spec("torch")
    if torch is None or torch.origin is None or not (Path(torch.origin).parent / "lib" / "libtorch_cuda.so").exists():
        return False
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    count = ctypes.c_int(0)
    return driver.cuInit(0) == 0 and driver.cuDeviceGetCount(ctypes.byref(count)) == 0 and count.value > 0


def choose_provider(settings: Settings) -> Provider:
    """The sandbox for submissions.

    Raises:
        UsageError: the folder of private cases could be read inside it.
        SandboxError: it cannot be used here.
    """
    provider, private = sandboxes.choose(settings.sandbox, providers(settings)), private_folder(settings)
    if private is not None and provider.shows(private):
        what = f"{private} can be read inside the sandbox {provider.name}"
        raise UsageError("private_cases", what, "move it" if isolates(provider.name) else "use docker or bwrap")
    return provider


def providers(settings: Settings) -> list[Provider]:
    """Every sandbox provider with this project's settings, strongest first, whether or not it can be used here."""
    return sandboxes.providers(sandboxes.Options(settings.image, settings.docker_binds, settings.docker_python))


def _settings(device: DeviceChoice, sandbox: SandboxChoice, **flags: Any) -> Settings:
    """The project's settings; "auto" leaves the choice to them."""
    flags["device"] = None if device == "auto" else device
    flags["sandbox"] = None if sandbox == "auto" else sandbox
    return Settings.load(**flags)


def _silent(_step: Progress) -> None:
    pass
