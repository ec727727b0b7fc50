"""Times baselines (kernels of the organizers) in rounds that alternate with the submission's. Trusted.

A power-limited chip slows down as it heats, so a speedup compares adjacent rounds. In a block the submission goes first
and last, and the baselines run in between, in order and in reverse (ABBA), so that a linear drift affects all alike. A
baseline's outputs are checked once per case. If a baseline fails, the submission only loses the speedup over it.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness import stats
from harness.device import Sensors
from harness.judge.correctness.graded_case import GradedCase
from harness.judge.session import Session, SubmissionFault
from harness.judge.timing.interface import NO_MEMORY, Benchmarks, described
from harness.judge.timing.precision import RESOLUTION, ratio
from harness.judge.timing.rounds.batch_size import prepare_rounds
from harness.judge.timing.rounds.overhead import Overhead
from harness.judge.timing.rounds.rounds import Rounds
from harness.submission import Submission
from harness.verdict import PairedBaseline, TimedRound


class Baseline:
    """One baseline of a grading. After a failure `fault` contains the message, and the baseline is not measured."""

    def __init__(self, name: str, submission: Submission, session: Session) -> None:
        self.name, self.submission, self._session = name, submission, session
        self.fault: str | None = None

    def cpu_ns(self) -> int | None:
        """The CPU time of its sandbox, as `Sandbox.cpu_ns`."""
        return self._session.cpu_ns()

    def build(self, benchmarks: Benchmarks) -> None:
        """Wait for its sandbox, and build it there."""
        self._session.handshake()
        try:
            benchmarks.build(self._session, self.submission)
        except SubmissionFault as fault:
            self.fault = fault.message

    def pair(self, case: GradedCase, overhead: Overhead, sensors: Sensors) -> PairedRounds | None:
        """Prepare the baseline for one case; None if it has failed."""
        if self.fault is None:
            case = case.of_baseline(self.submission)
            try:
                rounds = Rounds(self._session, case, sensors, case.time_limit())
                prepare_rounds(rounds, case, overhead)
                if self._session.interpreted:
                    self.fault = "Triton's interpreter ran it, and such a time says nothing of its speed"
                    return None
                rounds.play("warm-up round", checked=case.problem.has_reference)
                return PairedRounds(self, rounds, overhead)
            except (SubmissionFault, *NO_MEMORY) as fault:
                self.fault = f"{case.name}: {described(fault)}"
        return None


class PairedRounds:
    """A baseline's rounds in one case."""

    def __init__(self, baseline: Baseline, rounds: Rounds, overhead: Overhead) -> None:
        self._baseline, self._rounds, self._overhead = baseline, rounds, overhead
        self._played: list[TimedRound] = []

    def forget(self) -> None:
        """Discard the rounds so far, because the submission is measured again."""
        self._played.clear()

    def play(self) -> None:
        """Play one round."""
        if self._baseline.fault is None:
            try:
                self._played.append(self._rounds.play(f"round {len(self._played) + 1}", checked=False))
            except (SubmissionFault, *NO_MEMORY) as fault:
                self._baseline.fault = described(fault)

    def speedup(self, times_ns: Sequence[float], error: float) -> stats.Estimate | None:
        """The speedup of a submission with these times per call, paired by index with the baseline's rounds.

        `error`: the error of each time, as a share of it, that follows from the error of the overhead.
        """
        if len(self._played) != len(times_ns) or not stats.median(self._times_ns):
            return None
        # A single round may be no longer than its overhead, and then its time is 0.
        pairs = zip(self._times_ns, times_ns, strict=True)
        ratios = [max(1.0, baseline_ns) / max(1.0, submission_ns) for baseline_ns, submission_ns in pairs]
        return stats.paired_ratio(ratios, resolution=RESOLUTION + error + self._error)

    def result(self, times_ns: Sequence[float], error: float) -> PairedBaseline | None:
        """The baseline's part of the verdict; None if it failed."""
        estimate = self.speedup(times_ns, error)
        if estimate is None:
            return None
        return PairedBaseline(
            name=self._baseline.name,
            sha256=self._baseline.submission.sha256,
            rounds=tuple(self._played),
            time_ns=round(stats.median(self._times_ns)),
            speedup=ratio(estimate),
        )

    @property
    def _times_ns(self) -> list[float]:
        return [played.call_ns(self._overhead.usual_ns) for played in self._played]

    @property
    def _error(self) -> float:
        """The error of a call's time, as a share of it, that follows from the error of the overhead."""
        return self._overhead.error_ns / self._rounds.calls / max(1.0, stats.median(self._times_ns))
