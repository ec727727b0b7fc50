"""A baseline: in its own sandbox, with sealed rounds that alternate with the submission's. Trusted.

A power-limited chip slows by several percent as it heats, so a speedup is taken from adjacent rounds. In a block the
submission goes first and last, the baselines in between, in order and in reverse (ABBA): a linear drift affects both
alike. The baseline's claims are believed, since the organizers wrote it; its outputs are checked once per case.
Whatever goes wrong with it costs the submission its speedup and nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness import stats
from harness.device import Sensors
from harness.judge.correctness.graded_case import GradedCase
from harness.judge.session import Session, SubmissionFault
from harness.judge.timing.interface import Benchmarks
from harness.judge.timing.plan import Plan, claimed_latency, sets_for
from harness.judge.timing.precision import RESOLUTION, ratio
from harness.judge.timing.sealed.agreement import claim_ns
from harness.judge.timing.sealed.rounds import Rounds
from harness.submission import Submission
from harness.verdict import PairedBaseline, SealedRound


class Baseline:
    """One baseline of a grading. After a failure `fault` says what it was, and measuring stops."""

    def __init__(self, submission: Submission, session: Session) -> None:
        self.submission, self._session = submission, session
        self.name = submission.name.partition(".")[0]
        self.fault: str | None = None

    def cpu_ns(self) -> int | None:
        """As for `Sandbox.cpu_ns`."""
        return self._session.cpu_ns()

    def build(self, benchmarks: Benchmarks) -> None:
        """Wait for its sandbox, and hand the source over."""
        self._session.handshake()
        try:
            benchmarks.hand_over(self._session, self.submission)
        except SubmissionFault as fault:
            self.fault = fault.message

    def pair(self, case: GradedCase, plan: Plan, sensors: Sensors) -> Paired | None:
        """Prepare it for one case; None once it has failed."""
        if self.fault is None:
            try:
                limit = case.time_limit()
                rounds = Rounds(self._session, case, sensors, limit)
                latency = claimed_latency(self._session, case, plan, limit)
                captured = rounds.prepare(sets_for(case.layout, latency.claimed_median_ns, plan))
                rounds.play_alone("warm-up round")
                return Paired(self, rounds, plain=not captured.graphs)
            except SubmissionFault as fault:
                self.fault = f"{case.name}: {fault.message}"
        return None


class Paired:
    """A baseline's rounds in one case."""

    def __init__(self, baseline: Baseline, rounds: Rounds, *, plain: bool) -> None:
        self._baseline, self._rounds, self._plain = baseline, rounds, plain
        self.played: list[SealedRound] = []

    def play(self) -> None:
        """One more round."""
        if self._baseline.fault is None:
            try:
                self.played.append(self._rounds.play_alone(f"sealed round {len(self.played) + 1}", checked=False))
            except SubmissionFault as fault:
                self._baseline.fault = fault.message

    def speedup(self, times_ns: Sequence[float], clean: Sequence[int]) -> stats.Estimate | None:
        """Speedup of a submission with these times per call, paired by index with the baseline's rounds.

        Only the rounds with an index in `clean` count.
        """
        if len(self.played) != len(times_ns):
            return None
        own = [claim_ns(r, plain=self._plain) for r in self.played]
        ratios = [own[i] / times_ns[i] for i in clean if times_ns[i] > 0 and own[i] > 0]
        return stats.paired_ratio(ratios, resolution=RESOLUTION) if len(ratios) == len(clean) else None

    def result(self, times_ns: Sequence[float], clean: Sequence[int]) -> PairedBaseline | None:
        """Its part of the verdict; None if it failed half-way."""
        estimate = self.speedup(times_ns, clean)
        if estimate is None:
            return None
        return PairedBaseline(
            name=self._baseline.name,
            sha256=self._baseline.submission.sha256,
            rounds=tuple(self.played),
            claimed_ns=round(stats.median([claim_ns(r, plain=self._plain) for r in self.played])),
            speedup=ratio(estimate),
        )
