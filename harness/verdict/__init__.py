"""The result of a grading: the verdict and all measurements behind it, as one immutable JSON document.

The judge makes it, the ledger stores it, and the board reads it. All invariants are checked at construction, so an
accepted verdict without a time cannot exist. Trusted. Times are integers in nanoseconds. Absent values are omitted,
never NaN.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self, get_args

from pydantic import AwareDatetime, Field, StringConstraints, ValidationError, model_validator
from pydantic_core import from_json

from harness.kinds import DeviceKind, Effort, SandboxName, Timing
from harness.verdict.benchmark import (
    BenchmarkResult,
    Interval,
    LaunchedKernel,
    PairedBaseline,
    Ratio,
    ReplayedBenchmark,
    ReplayedCalls,
    Roofline,
    RoundsBenchmark,
    Speedup,
    Telemetry,
    TimedRound,
)
from harness.verdict.case import BadElement, Budget, CaseResult, Mismatch, OutputCheck
from harness.verdict.doubt import Doubt, DoubtCode, NoRank, no_rank
from harness.verdict.earlier import upgraded
from harness.verdict.identity import Environment, PrivateId, ProblemId, SubmissionId
from harness.verdict.outcome import Outcome, Stage
from harness.verdict.record import FrozenModel, Nanoseconds, Sha256

RUN_ID = r"^[0-9a-f]{16}$"
ReadableVersion = Literal[1, 2]  # of the document; a ledger with another version is refused
SchemaVersion = Literal[2]
SCHEMA_VERSION: SchemaVersion = get_args(SchemaVersion)[0]


class Check(FrozenModel):
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
    tests_not_run: int = Field(default=0, ge=0, description="by choice, or after an earlier failure")
    log: str = Field(default="", description="build log and the submission's own output, head and tail")
    traceback: str = Field(default="", description="the participant's own lines only")

    @model_validator(mode="after")
    def _outcome_follows_from_the_tests(self) -> Self:
        failed = [c for c in self.tests if c.outcome is not Outcome.ACCEPTED]
        if self.outcome is Outcome.ACCEPTED and (failed or not self.tests or self.tests_not_run):
            raise ValueError("accepted needs at least one test, and every test accepted")
        if self.outcome is Outcome.INCOMPLETE and (failed or not self.tests_not_run):
            raise ValueError("incomplete needs a test that was not run, and every other test accepted")
        if self.outcome is not Outcome.ACCEPTED and not self.message:
            raise ValueError("a submission that is not accepted comes with the reason")
        return self


class Verdict(Check):
    """A whole grading. Accepted verdicts, and only these, have a score.

    `created_at` is the time before the first hidden test, because the duration of hidden tests would reveal their
    sizes. `duration_ns` is the time until then, plus the time of replays after the runner had ended.
    """

    schema_version: SchemaVersion = SCHEMA_VERSION
    run: Annotated[str, StringConstraints(pattern=RUN_ID)]
    created_at: AwareDatetime
    duration_ns: Nanoseconds
    effort: Effort = "default"
    timing: Timing = Field(description="how the benchmark cases were timed: all in one way")
    ranked_timing: Timing = Field(description="how they must be timed on this device for the problem to rank them")
    benchmarks: tuple[BenchmarkResult, ...] = ()
    score: Interval | None = None
    requested_baselines: tuple[str, ...] | None = Field(
        default=None, description="the names of the baselines to compare with; left out by earlier versions"
    )
    speedups: tuple[Speedup, ...] = ()
    doubts: tuple[Doubt, ...] = ()

    @model_validator(mode="after")
    def _accepted_means_timed(self) -> Self:
        accepted = self.outcome is Outcome.ACCEPTED
        if accepted and not self.benchmarks:
            raise ValueError("an accepted verdict has at least one timed case")
        if self.outcome is Outcome.INCOMPLETE:
            raise ValueError("a whole grading runs all tests, unless one fails")
        if accepted != (self.score is not None):
            raise ValueError("a score belongs to accepted verdicts, and to every one of them")
        if any((benchmark.mode == "replayed") != (self.timing == "replayed") for benchmark in self.benchmarks):
            raise ValueError("all cases are timed in the same way")
        by_one_clock = (case.mode == "replayed" or case.overhead_error_ns is not None for case in self.benchmarks)
        if self.timing != "sealed" and not all(by_one_clock):
            raise ValueError("a time of rounds comes with the error of their overhead")
        if self.timing == "replayed" and self.ranked_timing != "replayed":
            raise ValueError("calls are replayed only where that ranks")
        return self

    @property
    def ranks(self) -> bool:
        """Whether its time has a rank, if it was accepted."""
        return self.no_rank is None

    @property
    def no_rank(self) -> NoRank | None:
        """Why its time has no rank; None if it has one."""
        return no_rank(self.timing == self.ranked_timing, (doubt.code for doubt in self.doubts))

    def to_json(self) -> str:
        """The document on one line, without absent values."""
        return self.model_dump_json(exclude_none=True)

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Read a document of this version or an earlier one; it may contain the schema, as commands print it.

        Raises:
            ValidationError: this version cannot read the document.
        """
        try:
            return cls.model_validate_json(text)
        except ValidationError as error:
            if not {fault["loc"] for fault in error.errors()} & {("schema_version",), ("$schema",)}:
                raise
            own = {key: value for key, value in from_json(text).items() if key not in ("$schema", "version")}
            try:
                present = upgraded(own)
            except (AttributeError, TypeError):  # something is not a JSON object as it should be
                raise error from None
            return cls.model_validate(present)
