"""The result of a grading: the verdict and everything that it rests on, as one immutable JSON document.

The judge constructs it, the ledger stores it, the board reads it. Every invariant is checked at construction, so an
accepted verdict without a timing cannot exist. Trusted. Times are integers in nanoseconds; absent values are absent,
never NaN. Field names that begin with `claimed_` hold what the untrusted runner said.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

Nanoseconds = Annotated[int, Field(ge=0)]
Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
DeviceKind = Literal["cpu", "cuda"]
SandboxName = Literal["docker", "bwrap", "process"]
Effort = Literal["quick", "default", "thorough"]
Timing = Literal["sealed", "replayed"]


class Record(BaseModel):
    """An immutable part of a verdict; unknown keys and non-finite numbers are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Outcome(StrEnum):
    """What became of a submission. Our own failures are not outcomes but `HarnessError`s."""

    ACCEPTED = "accepted"
    WRONG_ANSWER = "wrong_answer"
    COMPILE_ERROR = "compile_error"
    RUNTIME_ERROR = "runtime_error"
    TIMEOUT = "timeout"
    MEMORY_LIMIT = "memory_limit"
    REJECTED = "rejected"
    UNSUPPORTED = "unsupported"
    """Triton's interpreter cannot run it, or it needs a GPU: neither right nor wrong."""

    @property
    def exit_code(self) -> int:
        """The command line's exit status for this outcome (2 and 7 belong to the two exception families)."""
        return _EXIT_CODES[self]


_EXIT_CODES = {
    Outcome.ACCEPTED: 0,
    Outcome.WRONG_ANSWER: 1,
    Outcome.COMPILE_ERROR: 3,
    Outcome.RUNTIME_ERROR: 4,
    Outcome.MEMORY_LIMIT: 4,
    Outcome.TIMEOUT: 5,
    Outcome.REJECTED: 6,
    Outcome.UNSUPPORTED: 8,
}


class Stage(StrEnum):
    """The stages of one grading, in their order."""

    BUILD = "build"
    TEST = "test"
    RECORD = "record"
    """Calls are recorded as data, for a launcher to make them."""
    TIME = "time"
    SEAL = "seal"
    """Sealed rounds, before the hidden tests."""
    HIDDEN = "hidden"
    REPLAY = "replay"
    """A launcher makes the recorded calls, after the hidden tests."""


class PrivateId(Record):
    """That a problem had private cases: the hash of their file, and how many of them are for the device."""

    sha256: Sha256
    cases: Annotated[int, Field(ge=0)]


class ProblemId(Record):
    """Which problem, exactly: the hash covers problem.toml, reference.py and private cases, not when and to whom."""

    slug: str
    sha256: Sha256
    private: PrivateId | None = None


class SubmissionId(Record):
    """Which submission, exactly: the hash covers language and source, not the author or the file's name."""

    sha256: Sha256
    name: str
    author: str
    language: Literal["py", "cu", "cpp"]
    size_bytes: Annotated[int, Field(ge=0)]


class Environment(Record):
    """Where it ran. Two verdicts from different devices are never ranked in one table."""

    device_kind: DeviceKind
    device_name: str
    device_uuid_sha256: Sha256 | None = None
    driver: str | None = None
    cuda: str | None = None
    power_limit_mw: int | None = None
    sandbox: SandboxName
    image_digest: str | None = None
    interpreted: bool = Field(description="Triton ran in its interpreter: semantics were tested, speed was not")
    python: str
    torch: str
    triton: str | None = None

    @property
    def isolated(self) -> bool:
        """Whether the submission could reach nothing but its sandbox."""
        return self.sandbox != "process"


class Budget(Record):
    """One error metric of one output: what it is, what it may be, and why."""

    error: float = Field(ge=0)
    allowed: float = Field(ge=0)
    reference_error: float = Field(ge=0, description="the honest reference's own error in the problem's dtype")
    factor: float = Field(gt=0, description="allowed = max(factor × reference_error, floor)")
    floor: float = Field(ge=0, description="a few ulps of the output's dtype")

    @property
    def met(self) -> bool:
        return self.error <= self.allowed


class BadElement(Record):
    """One wrong element; values are text so that NaN, infinities and 64-bit integers survive JSON."""

    index: tuple[int, ...]
    got: str
    expected: str
    error: str


class Mismatch(Record):
    """Why an output is wrong, in a form that helps its author find the line."""

    output: str
    shape: tuple[int, ...]
    dtype: str
    wrong: int = Field(ge=0, description="elements outside the budget, by the larger of the two metrics")
    total: int = Field(gt=0)
    nan_got: int = 0
    nan_expected: int = 0
    inf_got: int = 0
    inf_expected: int = 0
    worst_index: tuple[int, ...] | None = None
    first: tuple[BadElement, ...] = ()
    hints: tuple[str, ...] = ()

    @property
    def percent(self) -> float:
        return 100.0 * self.wrong / self.total


class OutputCheck(Record):
    """One output of one case against the truth. Integer outputs have no budgets: they must be equal."""

    output: str
    dtype: str
    correct: bool
    max_error: Budget | None = None
    rms_error: Budget | None = None
    mismatch: Mismatch | None = None

    @model_validator(mode="after")
    def _wrong_needs_a_mismatch(self) -> Self:
        if self.correct == (self.mismatch is not None):
            raise ValueError("an output is either correct or has a mismatch")
        return self


class CaseResult(Record):
    """One test case. A hidden case tells its outcome and nothing of its inputs."""

    name: str
    hidden: bool = False
    params: dict[str, int | str] = {}
    outcome: Outcome
    message: str = ""
    outputs: tuple[OutputCheck, ...] = ()

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.outcome is Outcome.ACCEPTED and not all(o.correct for o in self.outputs):
            raise ValueError("an accepted case has no wrong output")
        if self.outcome is not Outcome.ACCEPTED and not self.message:
            raise ValueError("a failed case says why")
        if self.hidden and (self.params or self.outputs):
            raise ValueError("a hidden case shows neither parameters nor values")
        return self


class Interval(Record):
    """A median with its confidence interval, in nanoseconds per call."""

    median_ns: Nanoseconds
    low_ns: Nanoseconds
    high_ns: Nanoseconds
    confidence: float = Field(gt=0, lt=1)

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if not self.low_ns <= self.median_ns <= self.high_ns:
            raise ValueError("low ≤ median ≤ high")
        return self


class Ratio(Record):
    """The median of paired ratios with its confidence interval."""

    median: float = Field(gt=0)
    low: float = Field(gt=0)
    high: float = Field(gt=0)
    confidence: float = Field(gt=0, lt=1)

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if not self.low <= self.median <= self.high:
            raise ValueError("low ≤ median ≤ high")
        return self


class ClaimedLatency(Record):
    """The event/sync protocol's distribution over single cold calls, as the runner reports it."""

    hold: Literal["memory", "spin", "none"] = Field(
        default="none", description="what hid the launch latency: a wait on a memory value, a spinning kernel, nothing"
    )
    claimed_p10_ns: Nanoseconds
    claimed_median_ns: Nanoseconds
    claimed_p90_ns: Nanoseconds
    claimed_samples_ns: tuple[Nanoseconds, ...] = Field(min_length=1)
    claimed_span_ns: Nanoseconds = Field(description="median of the host's time from release to the device's end")


class Telemetry(Record):
    """What the driver said of the device right after a round; absent where it does not say."""

    sm_mhz: int | None = None
    memory_mhz: int | None = None
    power_mw: int | None = None
    temperature_c: int | None = None
    throttle: tuple[str, ...] = Field(default=(), description="why the clocks were lowered, as NVML names it")


class SealedRound(Record):
    """One batch of calls on inputs that did not exist for the runner before the judge's clock started."""

    calls: int = Field(gt=0, description="calls that the judge drew to be run")
    sets: int = Field(gt=0, description="input sets in the arena; those not drawn must stay untouched")
    seed: int = Field(ge=0, description="of the secret inputs; drawn for this round, in the judge")
    wall_ns: Nanoseconds = Field(description="the judge's clock over the whole batch, overhead included")
    claimed_ns: Nanoseconds = Field(description="the runner's event time over the same launch")
    claimed_span_ns: Nanoseconds = Field(
        description="the runner's host time from the stream's release to the device's end"
    )
    held_up_ns: Nanoseconds = Field(
        default=0, description="how long the judge was ready to run and had no CPU, while its clock ran"
    )
    telemetry: Telemetry | None = None


class ReplayedCalls(Record):
    """Calls that a launcher made one at a time, each on inputs of its own, by three clocks; in their order."""

    device_ns: tuple[Nanoseconds, ...] = Field(
        min_length=1, description="by CUPTI, from the first kernel's start to the last one's end"
    )
    event_ns: tuple[Nanoseconds, ...] = Field(description="by the device's events around the same launch")
    span_ns: tuple[Nanoseconds, ...] = Field(
        description="by the launcher's host clock, from the stream's release to the device's end"
    )

    @model_validator(mode="after")
    def _each_call_has_three_times(self) -> Self:
        if not len(self.device_ns) == len(self.event_ns) == len(self.span_ns):
            raise ValueError("every call has a time by each of the three clocks")
        return self


class LaunchedKernel(Record):
    """What one call launches of one kernel."""

    name: str = Field(description="as the driver knows it")
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    cluster: tuple[int, int, int]
    registers: int = Field(ge=0, description="of a thread")
    shared_bytes: int = Field(ge=0, description="of a block, static and dynamic")
    local_bytes: int = Field(ge=0, description="of a thread: spilled registers and arrays")
    launches: int = Field(gt=0, description="in one call")
    time_ns: Nanoseconds | None = Field(
        default=None, description="of all its launches in a call, median over calls; absent where kernels may overlap"
    )


class PairedBaseline(Record):
    """One of the organizers' kernels, whose sealed rounds or replayed calls alternated with the submission's."""

    name: str
    sha256: Sha256
    rounds: tuple[SealedRound, ...] = ()
    calls: ReplayedCalls | None = None
    claimed_ns: Nanoseconds = Field(description="median over rounds of claimed / calls, or over calls of what counts")
    speedup: Ratio = Field(description="baseline / submission, so that more is better")

    @model_validator(mode="after")
    def _measured_in_one_way(self) -> Self:
        if bool(self.rounds) == (self.calls is not None):
            raise ValueError("a baseline has sealed rounds or replayed calls")
        return self


class Speedup(Record):
    """How much faster than a baseline a submission is, over all benchmark cases: the geometric mean."""

    baseline: str
    sha256: Sha256
    ratio: Ratio


class Roofline(Record):
    """How much of what the device can do at most a case's time amounts to."""

    share: float = Field(gt=0, description="the least time that the device needs, over the time that counts")
    limit: Literal["memory", "arithmetic"]


class Doubt(Record):
    """A reason to trust a number less; recorded, never acted upon by deleting samples."""

    code: str
    text: str


class _Timed(Record):
    """What every timed case has."""

    name: str
    params: dict[str, int | str]
    score: Interval
    stop_reason: Literal["converged", "budget", "unstable"]
    baselines: tuple[PairedBaseline, ...] = ()
    roofline: Roofline | None = None
    minimum_bytes: int | None = None
    minimum_flops: int | None = None
    doubts: tuple[Doubt, ...] = ()


class SealedBenchmark(_Timed):
    """One case timed in sealed rounds: the claim, the rounds, and whether the two agree."""

    mode: Literal["graphs", "calls"] = Field(description="graphs: captured calls; calls: the submission's own code ran")
    claimed_latency: ClaimedLatency
    rounds: tuple[SealedRound, ...] = Field(min_length=1)
    null_walls_ns: tuple[Nanoseconds, ...] = Field(min_length=1)
    overhead_ns: Nanoseconds = Field(description="taken off every wall: the null rounds' median, with a limit")
    noise_ns: Nanoseconds = Field(description="spread (p90 - p10) of the null rounds, with a limit")
    sealed_ns: Nanoseconds = Field(description="median over rounds of (wall - overhead) / calls")
    claimed_ns: Nanoseconds = Field(description="median over rounds of claimed / calls")
    tolerance_ns: Nanoseconds = Field(
        description="how far the claim may lie below the sealed time, per call, if granted"
    )

    @property
    def telemetry(self) -> tuple[Telemetry | None, ...]:
        """What the sensors said after each round."""
        return tuple(each.telemetry for each in self.rounds)

    @model_validator(mode="after")
    def _the_clock_bounds_the_score(self) -> Self:
        if self.score.median_ns + 1 < self.sealed_ns - self.tolerance_ns:
            raise ValueError("a score below what the judge's clock allows")
        return self


class ReplayedBenchmark(_Timed):
    """One case timed by a launcher, in which nothing of the submission ran but its kernels."""

    mode: Literal["replayed"] = "replayed"
    calls: ReplayedCalls
    seeds: tuple[int, ...] = Field(description="of each group of inputs, in their order; drawn in the judge")
    group: int = Field(gt=0, description="calls whose inputs follow from one seed; the first of all are warm-ups")
    kernels: tuple[LaunchedKernel, ...] = Field(description="in the order of their first launches")
    event_extra_ns: Nanoseconds = Field(description="by how much events outlast CUPTI's time of a kernel of our own")
    span_extra_ns: Nanoseconds = Field(description="by how much the launcher's host clock outlasts events, likewise")
    telemetry: tuple[Telemetry | None, ...] = Field(default=(), description="what the sensors said after each block")

    @model_validator(mode="after")
    def _each_call_has_its_inputs(self) -> Self:
        if len(self.seeds) * self.group < len(self.calls.device_ns):
            raise ValueError("every call has inputs of its own")
        return self


BenchmarkResult = Annotated[SealedBenchmark | ReplayedBenchmark, Field(discriminator="mode")]


class Check(Record):
    """A grading without times: build, visible tests and hidden tests."""

    outcome: Outcome
    stage: Stage = Field(description="the last stage that was entered")
    message: str = Field(description="one line; empty only when accepted")
    problem: ProblemId
    submission: SubmissionId
    environment: Environment
    protocol: int
    seeds: tuple[int, ...] = Field(default=(), description="of the inputs of the visible test cases, in order")
    tests: tuple[CaseResult, ...] = ()
    tests_not_run: int = Field(default=0, ge=0, description="those that an earlier failure left no runner for")
    log: str = Field(default="", description="build log and the submission's own output, head and tail")
    traceback: str = Field(default="", description="the participant's own lines only")

    @model_validator(mode="after")
    def _outcome_follows_from_the_tests(self) -> Self:
        failed = [c for c in self.tests if c.outcome is not Outcome.ACCEPTED]
        if self.outcome is Outcome.ACCEPTED and (failed or not self.tests or self.tests_not_run):
            raise ValueError("accepted needs at least one test, and every test accepted")
        if self.outcome is not Outcome.ACCEPTED and not self.message:
            raise ValueError("a submission that is not accepted is told why")
        return self


class Verdict(Check):
    """A whole grading. Only an accepted one has a score, and an accepted one always has one.

    `created_at` is taken before the first hidden test, whose length would tell of its sizes; `duration_ns` is the time
    until then, and what replays took after the runner had ended.
    """

    schema_version: Literal[1] = 1
    run: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{16}$")]
    created_at: datetime
    duration_ns: Nanoseconds
    effort: Effort = "default"
    timing: Timing = Field(default="sealed", description="how the benchmark cases were timed: all in one way")
    benchmarks: tuple[BenchmarkResult, ...] = ()
    score: Interval | None = None
    speedups: tuple[Speedup, ...] = ()
    doubts: tuple[Doubt, ...] = ()

    @model_validator(mode="after")
    def _accepted_means_timed(self) -> Self:
        accepted = self.outcome is Outcome.ACCEPTED
        if accepted and not self.benchmarks:
            raise ValueError("an accepted verdict has at least one timed case")
        if accepted != (self.score is not None):
            raise ValueError("a score belongs to accepted verdicts, and to every one of them")
        if any((benchmark.mode == "replayed") != (self.timing == "replayed") for benchmark in self.benchmarks):
            raise ValueError("all cases are timed in the same way")
        if self.created_at.tzinfo is None:
            raise ValueError("created_at carries its time zone")
        return self

    def to_json(self) -> str:
        """The document on one line, without absent values."""
        return self.model_dump_json(exclude_none=True)

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        return cls.model_validate_json(text)
