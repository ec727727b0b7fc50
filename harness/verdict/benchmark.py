"""The time of one benchmark case, measured in rounds of plain calls or by replayed calls."""

from __future__ import annotations

from statistics import median
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from harness.verdict.doubt import Doubt
from harness.verdict.record import FrozenModel, Nanoseconds, Sha256


class Interval(FrozenModel):
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


class Ratio(FrozenModel):
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


class Telemetry(FrozenModel):
    """Sensor readings right after a round; None if the driver does not report them."""

    sm_mhz: int | None = None
    memory_mhz: int | None = None
    power_mw: int | None = None
    temperature_c: int | None = None
    throttle: tuple[str, ...] = Field(default=(), description="why the clocks were lowered, as NVML names it")


class TimedRound(FrozenModel):
    """One batch of calls on inputs that did not exist for the runner before the judge's clock started."""

    calls: int = Field(gt=0)
    seed: int = Field(ge=0, description="of the secret inputs; drawn for this round, in the judge")
    wall_ns: Nanoseconds = Field(description="the judge's clock over the whole round, overhead included")
    telemetry: Telemetry | None = None

    def call_ns(self, overhead_ns: int) -> float:
        """The time of one call, without the overhead of the round."""
        return max(0, self.wall_ns - overhead_ns) / self.calls


class ReplayedCalls(FrozenModel):
    """Calls that a launcher made one at a time, each on inputs of its own; their times by three clocks, in order."""

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


class LaunchedKernel(FrozenModel):
    """One call's launches of one kernel."""

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


class PairedBaseline(FrozenModel):
    """One of the organizers' kernels, whose rounds or replayed calls alternated with the submission's."""

    name: str = Field(description="of its file; with `(another computation)` if it does not compute what is asked")
    sha256: Sha256
    rounds: tuple[TimedRound, ...] = ()
    calls: ReplayedCalls | None = None
    time_ns: Nanoseconds = Field(description="of a call: the median over its rounds, or over its replayed calls")
    speedup: Ratio = Field(description="baseline / submission, so that more is better")
    peak_bytes: int | None = Field(default=None, ge=0, description="as of the submission's calls")

    @model_validator(mode="after")
    def _measured_in_one_way(self) -> Self:
        if bool(self.rounds) == (self.calls is not None):
            raise ValueError("a baseline has rounds or replayed calls")
        return self


class Speedup(FrozenModel):
    """The geometric mean of a submission's speedups over a baseline in all benchmark cases."""

    baseline: str
    sha256: Sha256
    ratio: Ratio
    known: Literal[True] | None = Field(
        default=None, description="the baseline's time is of an earlier grading on this device: calls did not alternate"
    )


class Roofline(FrozenModel):
    """The share of the device's peak rates that a case reaches."""

    share: float = Field(gt=0, description="the least time that the device needs, over the time that counts")
    limit: Literal["memory", "arithmetic"]


class _Timed(FrozenModel):
    """The fields that every timed case has."""

    name: str
    params: dict[str, int | str]
    score: Interval
    weight: float | None = Field(
        default=None, gt=0, description="how much it counts in means over all cases; not there: 1"
    )
    stop_reason: Literal["converged", "budget", "unstable"]
    baselines: tuple[PairedBaseline, ...] = ()
    roofline: Roofline | None = None
    minimum_bytes: int | None = None
    minimum_flops: int | None = None
    doubts: tuple[Doubt, ...] = ()


class RoundsBenchmark(_Timed):
    """One case timed in rounds of plain calls, by the judge's clock."""

    mode: Literal["calls", "graphs"] = Field(
        default="calls", description="graphs: a batch of captured calls, in documents of version 1 only"
    )
    rounds: tuple[TimedRound, ...] = Field(min_length=1)
    overhead_ns: Nanoseconds = Field(description="taken off the time of every round")
    overhead_error_ns: Nanoseconds | None = Field(
        default=None,
        description="how far it may be from the truth, as the interval of the score includes; "
        "not there in documents of version 1, whose scores were claims within a tolerance",
    )

    @property
    def telemetry(self) -> tuple[Telemetry | None, ...]:
        """The sensor readings after each round."""
        return tuple(played.telemetry for played in self.rounds)

    @model_validator(mode="after")
    def _the_rounds_give_the_score(self) -> Self:
        median_ns = median(played.call_ns(self.overhead_ns) for played in self.rounds)
        if self.overhead_error_ns is not None and abs(self.score.median_ns - median_ns) > 1:
            raise ValueError("a score that is not the median of the rounds")
        return self


class ReplayedBenchmark(_Timed):
    """One case timed by a launcher, without the submission's host code."""

    mode: Literal["replayed"] = "replayed"
    calls: ReplayedCalls
    seeds: tuple[int, ...] = Field(description="of each group of inputs, in their order; drawn in the judge")
    group: int = Field(gt=0, description="calls whose inputs follow from one seed; the first of all are warm-ups")
    kernels: tuple[LaunchedKernel, ...] = Field(description="in the order of their first launches")
    event_extra_ns: Nanoseconds = Field(description="by how much events outlast CUPTI's time of a kernel of our own")
    span_extra_ns: Nanoseconds = Field(description="by how much the launcher's host clock outlasts events, likewise")
    telemetry: tuple[Telemetry | None, ...] = Field(default=(), description="what the sensors said after each block")
    scratch_bytes: int | None = Field(
        default=None,
        ge=0,
        description="device memory that the launcher gave each call besides inputs and outputs, none used more; "
        "all that the submission had allocated by the time its call was recorded",
    )
    peak_bytes: int | None = Field(
        default=None,
        ge=0,
        description="the most device memory that a call had allocated at a time, results that it returns included and "
        "without what was there before it; as its process said, and at most `scratch_bytes`",
    )
    host_ns: Nanoseconds | None = Field(
        default=None,
        description="how long the submission's function took on the host, without a wait for the device: the median "
        "of the calls before the recording, as its process said; it has no effect on the score",
    )

    @model_validator(mode="after")
    def _each_call_has_its_inputs(self) -> Self:
        if len(self.seeds) * self.group < len(self.calls.device_ns):
            raise ValueError("every call has inputs of its own")
        return self


BenchmarkResult = Annotated[RoundsBenchmark | ReplayedBenchmark, Field(discriminator="mode")]
