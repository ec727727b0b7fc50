"""Tries every known attack and every honest kernel on this machine: no attack may succeed, no honest kernel be refused.

An attack is a folder of `attacks/` with a submission and an `expect.toml`; an honest kernel is one of `honest/`. The
test suite and `kernelmark audit --self-test` call this. Trusted; the submissions are judged like any other. An attack
has failed if its outcome is an expected one, there is proof that it ran, and, if it was accepted, it is no faster than
the honest kernel that it names.
"""

from __future__ import annotations

import re
import threading
import tomllib
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal, NamedTuple, NotRequired, Self, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from typing_extensions import TypedDict

from harness import sandbox
from harness.device import DEVICES
from harness.errors import UsageError
from harness.kinds import Effort, isolates
from harness.submission import Submission
from harness.verdict import DeviceKind, Interval, SandboxName, Verdict
from kernelmark.grading.fleet import Job
from kernelmark.grading.fleet.one_by_one import Grades, OneByOne, several
from kernelmark.project.choice import choose_device, providers
from kernelmark.project.settings import Settings
from kernelmark.text.terminal import columns, visible
from leaderboard.text.units import duration

HERE = Path(__file__).resolve().parent
PROBLEMS = HERE / "problems"  # one-line problems that the cases are graded on
Surface = Literal["clock", "work", "answers", "checker", "judge", "host"]
Ending = Literal[
    "accepted", "wrong_answer", "compile_error", "runtime_error", "timeout", "memory_limit", "rejected",
    "unsupported", "usage", "harness_error",
]  # fmt: skip
# How much faster than its twin's interval an accepted attack may be by chance: other processes also use the CPU.
_BY_CHANCE: dict[DeviceKind, float] = {"cpu": 0.15, "cuda": 0.01}
_TRIES = 4
EFFORT: Effort = "quick"


class KnownSubmission(BaseModel):
    """One submission of the suite and its expected result. Without a surface it is an honest kernel."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    folder: Path
    problem: str = "double"
    surface: Surface | None = None
    devices: Annotated[tuple[DeviceKind, ...], Field(min_length=1)]
    sandboxes: Annotated[tuple[SandboxName, ...], Field(min_length=1)] = ("bwrap",)
    outcomes: Annotated[tuple[Ending, ...], Field(min_length=1)] = ("accepted",)
    message: str = ""
    """A pattern that the verdict's message must match, unless it is accepted."""
    proof: str = ""
    """A pattern in its output or in the message that proves that it ran."""
    secret: str = ""
    """A pattern that must not be anywhere in the verdict: the attack would have leaked it."""
    twin: str = ""
    """The honest kernel that it is compared with if it is accepted."""
    host_only: bool = False
    """Whether it is only host code in its runner, which has no effect if a launcher makes the calls."""
    replays: bool = True
    """Whether an honest kernel's calls are replayed on a GPU."""
    gradings: int = Field(default=1, ge=1, le=3, description="number of consecutive gradings; the last counts")
    author: str = "attacker"
    name: str = ""
    """The file name to submit, if the name is the attack."""
    often: bool = False
    """Whether `make test` runs it too."""

    @model_validator(mode="after")
    def _an_attack_proves_itself(self) -> Self:
        if self.surface is not None and not self.proof:
            raise ValueError("an attack says what proves that it ran")
        if self.surface is not None and ("accepted" in self.outcomes or self.host_only) and not self.twin:
            raise ValueError("an attack that may be accepted names its honest twin")
        return self

    @property
    def label(self) -> str:
        return self.folder.name

    @property
    def source(self) -> Path:
        [file] = [path for path in self.folder.iterdir() if path.stem == "submission"]
        return file


class TrialGrading(NamedTuple):
    """The result of one grading of a case."""

    verdict: Verdict | None
    ending: Ending
    message: str


class Trial(NamedTuple):
    """The result of one case on one device in one sandbox; `failure` says why it is unacceptable."""

    case: KnownSubmission
    device: DeviceKind
    sandbox: SandboxName
    ending: Ending
    message: str
    score_ns: int | None
    twin_ns: int | None
    failure: str | None

    @property
    def result(self) -> str:
        """For people."""
        if self.failure:
            return f"FAILED: {visible(self.failure)}"
        return "held" if self.case.surface else "accepted"


class TrialDocument(TypedDict):
    """One case of `kernelmark audit --self-test`, for programs; without a `failure` it ended as it should."""

    surface: Surface | Literal["honest"]
    case: str
    device: DeviceKind
    sandbox: SandboxName
    ending: Ending
    message: str
    score_ns: int | None
    twin_ns: int | None
    failure: str | None


class SelfTestDocument(TypedDict):
    """All cases, the device, as far as its driver reports it, and when they were tried."""

    date: str
    device_name: str
    device_uuid_sha256: NotRequired[str]
    driver: NotRequired[str]
    cuda: NotRequired[str]
    power_limit_mw: NotRequired[int]
    trials: list[TrialDocument]


class SelfTest:
    """Tries cases, in any thread; `grades` gives what grades on a device, in a sandbox: by default this process."""

    def __init__(self, grades: Callable[[DeviceKind, SandboxName], Grades] | None = None) -> None:
        self._grades = grades or (lambda device, sandbox: OneByOne(Settings.load(device=device, sandbox=sandbox)))
        self._lock = threading.Lock()
        self._twins: dict[tuple[str, DeviceKind, SandboxName], Future[Interval | None]] = {}

    def attempt(self, case: KnownSubmission, device: DeviceKind, isolation: SandboxName) -> Trial:
        """Grade one case as often as it asks for, and its twin if the time decides.

        A time that seems too short is measured again, and so is the twin's: an attack that works does so every time,
        while a twin slowed by something else on the machine recovers.
        """
        for _ in range(_TRIES):
            trial = self._once(case, device, isolation)
            if not trial.failure or trial.twin_ns is None:
                break
            with self._lock:
                self._twins.pop((case.twin, device, isolation), None)
        return trial

    def _once(self, case: KnownSubmission, device: DeviceKind, isolation: SandboxName) -> Trial:
        for _ in range(case.gradings):
            verdict, ending, message = graded(case, self._grades(device, isolation))
        score = verdict.score if verdict else None
        failure, twin_ns = _failure(case, verdict, ending, message), None
        if failure is None and score is not None and case.twin:
            twin = self._twin_score(case.twin, device, isolation)
            if twin is None:
                failure = f"its honest twin {case.twin} was not accepted"
            else:
                twin_ns = twin.median_ns
                if score.median_ns < (1 - _BY_CHANCE[device]) * twin.low_ns:
                    failure = f"accepted at {duration(score.median_ns)}, where honest work takes {duration(twin_ns)}"
        score_ns = score.median_ns if score else None
        return Trial(case, device, isolation, ending, message, score_ns, twin_ns, failure)

    def _twin_score(self, label: str, device: DeviceKind, isolation: SandboxName) -> Interval | None:
        """The score of an honest kernel, graded once; other threads that ask meanwhile wait."""
        mine = Future[Interval | None]()
        with self._lock:
            known = self._twins.setdefault((label, device, isolation), mine)
        if known is mine:
            try:
                twin = next(case for case in honest() if case.label == label)
                verdict = graded(twin, self._grades(device, isolation)).verdict
                mine.set_result(verdict.score if verdict else None)
            except BaseException as error:
                mine.set_exception(error)
                raise
        return known.result()


def graded(case: KnownSubmission, grades: Grades) -> TrialGrading:
    """Grade one case once."""
    source = case.source
    name = case.name or f"{case.label}{source.suffix}"
    try:
        submission = Submission.of(source.read_bytes(), source.suffix[1:], author=case.author, name=name)
    except UsageError as error:
        return TrialGrading(None, "usage", str(error))
    job = Job(problem=PROBLEMS / case.problem, submission=submission)
    [result] = grades.grade_many([job], effort=EFFORT, baselines=())
    if result.verdict is None:
        return TrialGrading(
            None, "usage" if isinstance(result.error, UsageError) else "harness_error", str(result.error)
        )
    return TrialGrading(result.verdict, cast(Ending, result.verdict.outcome.value), result.verdict.message)


def attacks() -> list[KnownSubmission]:
    """Every attack, by surface and name.

    Raises:
        UsageError: an expect.toml is wrong.
    """
    order = ("clock", "work", "answers", "checker", "judge", "host")
    return sorted(_cases("attacks"), key=lambda case: (order.index(case.surface or "host"), case.label))


def honest() -> list[KnownSubmission]:
    """Every honest kernel.

    Raises:
        UsageError: as for `attacks`.
    """
    return _cases("honest")


def choose(settings: Settings, only: Sequence[str]) -> list[tuple[KnownSubmission, DeviceKind, SandboxName]]:
    """The cases that can be tried on the settings' device, each in the settings' sandbox.

    Raises:
        UsageError: no sandbox here isolates, or `only` names no case.
    """
    device, provider = choose_device(settings.device, "py"), sandbox.choose(settings.sandbox, providers(settings))
    if not isolates(provider.name):
        raise UsageError("kernelmark audit --self-test", "attacks need isolation", "install Docker or bubblewrap")
    chosen = [case for case in (*attacks(), *honest()) if device in case.devices]
    if only:
        chosen = [case for case in chosen if {case.label, case.surface or "honest"} & set(only)]
    if not chosen:
        raise UsageError(
            "--only",
            f"no case for {device} is called {' or '.join(only)}",
            "`kernelmark audit --self-test` without --only names all",
        )
    return [(case, device, provider.name) for case in chosen]


def lines(trials: Sequence[Trial]) -> list[str]:
    """One line per case, and a last line with the totals."""
    head, rows = ("surface", "case", "device", "sandbox", "outcome", "time", "twin", ""), []
    for t in trials:
        times = [duration(ns) if ns is not None else "" for ns in (t.score_ns, t.twin_ns)]
        rows.append((t.case.surface or "honest", t.case.label, t.device, t.sandbox, t.ending, *times, t.result))
    tried = sum(t.case.surface is not None for t in trials)
    total = f"attacks: {tried}, honest kernels: {len(trials) - tried}, failed: {len(failed(trials))}"
    return [*columns(rows, head=head, right={5, 6}), total]


def failed(trials: Iterable[Trial]) -> list[Trial]:
    """The failed trials."""
    return [trial for trial in trials if trial.failure]


def document(trials: Sequence[Trial]) -> SelfTestDocument:
    """The same for programs, with the device and the date."""
    rows: list[TrialDocument] = [
        {
            "surface": t.case.surface or "honest",
            "case": t.case.label,
            "device": t.device,
            "sandbox": t.sandbox,
            "ending": t.ending,
            "message": t.message,
            "score_ns": t.score_ns,
            "twin_ns": t.twin_ns,
            "failure": t.failure,
        }
        for t in trials
    ]
    facts = DEVICES[trials[0].device].facts().known()
    date = datetime.now(UTC).isoformat(timespec="seconds")
    return cast("SelfTestDocument", {"date": date, **facts, "trials": rows})


def _cases(kind: str) -> list[KnownSubmission]:
    files = sorted((HERE / kind).glob("*/expect.toml"))
    cases = []
    for file in files:
        try:
            cases.append(KnownSubmission(folder=file.parent, **tomllib.loads(file.read_text())))
        except (tomllib.TOMLDecodeError, ValidationError) as error:
            raise UsageError(str(file), str(error).replace("\n", " ")) from error
    return cases


def _failure(case: KnownSubmission, verdict: Verdict | None, ending: Ending, message: str) -> str | None:
    if case.host_only and ending == "accepted" and verdict and verdict.timing == "replayed":
        return None  # its time is compared with its twin's
    if ending not in case.outcomes:
        return f"{ending} where {' or '.join(case.outcomes)} was expected ({message[:300]})"
    if ending != "accepted" and not re.search(case.message, message, re.DOTALL):
        return f"the message does not say {case.message!r}: {message[:300]}"
    if case.surface is None and verdict and not _timed_as_expected(case, verdict):
        return f"its calls were timed as {verdict.timing}: {'; '.join(doubt.text for doubt in verdict.doubts)[:300]}"
    if case.secret and re.search(case.secret, verdict.to_json() if verdict else message):
        return f"it carried {case.secret!r} out"
    said = "\n".join((verdict.log, verdict.traceback, message)) if verdict else message
    if not re.search(case.proof, said):
        return f"nothing shows that it ran: {case.proof!r} is not in what it printed ({said[-300:]!r})"
    return None


def _timed_as_expected(case: KnownSubmission, verdict: Verdict) -> bool:
    captures = DEVICES[verdict.environment.device_kind].captures
    return not (captures and verdict.score) or (verdict.timing == "replayed") == case.replays


Chosen = tuple[KnownSubmission, DeviceKind, SandboxName]


def attempt_all(
    settings: Settings, chosen: Sequence[Chosen], jobs: int | None, on_trial: Callable[[Trial], None]
) -> list[Trial]:
    """Try all cases, `jobs` at a time on a GPU; `on_trial` is called with each result, in any order and any thread.

    On a CPU it is one after the other: some cases use up its time or look for what others have left on the machine.
    Only the first of several GPUs is used: two differ by more than an attack may differ from its honest twin.

    Raises:
        UsageError: several at a time were requested on a CPU.
        HarnessError: the GPU's worker did not start.
    """
    _, device, isolation = chosen[0]
    if device == "cpu" and jobs not in (None, 1):
        what = "the self-test tries one case at a time on a CPU, since cases would disturb each other"
        raise UsageError(f"--jobs {jobs}", what, "leave it out")
    own = settings.model_copy(update={"sandbox": isolation})
    with several(own, device, jobs, count=len(chosen), devices=1) as grades:
        selftest = SelfTest(lambda *_: grades)

        def attempt(case: Chosen) -> Trial:
            trial = selftest.attempt(*case)
            on_trial(trial)
            return trial

        if isinstance(grades, OneByOne):
            return list(map(attempt, chosen))
        # As many threads as the fleet has room for jobs: what a case asks for next is soon graded. After an
        # interruption the fleet is closed without waiting for them, and then they end.
        threads = ThreadPoolExecutor(grades.capacity)
        try:
            return list(threads.map(attempt, chosen))
        finally:
            threads.shutdown(wait=False, cancel_futures=True)
