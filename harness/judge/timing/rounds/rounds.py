"""Plays single rounds, which time calls by the judge's clock on inputs that the runner did not have before. Trusted.

In a round the judge fills new arenas, which the runner has not mapped. Then the clock starts. The judge sends the
descriptor of the inputs; the runner maps it, makes its calls, synchronizes and answers; the judge reads a secret sample
of the outputs and stops the clock. Afterwards it copies all outputs into private memory, where all must be right, and
the sample must not have changed. So `(wall - overhead) / calls` depends only on the judge's clock: the runner had no
inputs before the clock started, and all outputs when it stopped (docs/decisions/0003). docs/threat-model.md says what
can still be gained.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from harness.arena import settle
from harness.compare import describe
from harness.device import Sensors
from harness.judge.correctness.batch import Batch, WordSample
from harness.judge.correctness.cases import first_wrong
from harness.judge.correctness.graded_case import GradedCase
from harness.judge.session import Session, SubmissionFault
from harness.judge.session.conversation import R
from harness.judge.session.time_limit import TimeLimit
from harness.judge.timing.dealt_values import check_values, fault_with_values
from harness.problem import ResolvedCase
from harness.verdict import Outcome, TimedRound
from harness.wire import commands, replies

# The judge's threads that filled the memory spin for some time on processors that the calls need: with two processors,
# most rounds were late by a time slice of 3 ms. The runner, too, is still awake just after its last command.
_PAUSE_S = 0.02


class Rounds:
    """Rounds of one benchmark case in one session; `prepare` sets how many calls each has."""

    def __init__(self, session: Session, case: GradedCase, sensors: Sensors, limit: TimeLimit) -> None:
        self._session, self._case, self._sensors, self._limit = session, case, sensors, limit
        self.calls = 0
        self._result_strides: Mapping[str, tuple[int, ...]] = {}  # the runner keeps to them

    def prepare(self, calls: int) -> None:
        """Let the runner prepare `calls` calls on practice memory, at the addresses that secret memory will have.

        Raises:
            SubmissionFault: the submission failed, or its time is used up.
        """
        begins, self.calls = self.calls == 0, calls
        practice = self._case.batch(calls, judged=False)
        try:
            self._case.bind(self._session, practice, limit=self._limit, doing=self._doing)
            call = commands.Call(sets=(0,), within_ms=self._limit.left_ms, begins=begins)
            self._result_strides = self._case.result_strides(self._ask(call, replies.Done))
            self._ask(commands.Unmap(), replies.Done)
        finally:
            practice.close_arenas()

    def play(self, where: str, *, checked: bool = True) -> TimedRound:
        """Play one round.

        Raises:
            SubmissionFault: an output was wrong, or the runner failed; `where` names the round.
        """
        settle(self._case.device)
        batch = self._case.batch(self.calls)
        sample, wall_ns = self._made(batch)
        telemetry = self._sensors.read()
        if checked:
            self._check(batch, sample, where)
        return TimedRound(calls=self.calls, seed=batch.seed, wall_ns=wall_ns, telemetry=telemetry)

    def play_with_values(self, values: Sequence[ResolvedCase]) -> None:
        """Play one untimed round in which the calls have the values of these cases in turn.

        Raises:
            SubmissionFault: an output was wrong, or the runner failed.
        """
        batch = self._case.batch(self.calls, values=values)
        try:
            self._made(batch)
            if out_of_bounds := batch.out_of_bounds(range(self.calls)):
                raise SubmissionFault(Outcome.REJECTED, out_of_bounds.text)
        except SubmissionFault as fault:
            raise fault_with_values(values, fault.outcome, fault.message) from None
        check_values(batch, self._case.truth, range(self.calls))

    def _made(self, batch: Batch) -> tuple[WordSample, int]:
        """Let the runner play a round on a batch, and take its snapshot; returns the sample, and the ns it took."""
        batch.result_strides = self._result_strides
        try:
            sample = batch.draw_sample(range(self.calls))
            wall_ns = timed(self._session, batch, sample, self.calls, self._limit, self._doing)
            batch.snapshot()
            self._ask(commands.Unmap(), replies.Done)
            return sample, wall_ns
        finally:
            batch.close_arenas()

    @property
    def left_ns(self) -> int:
        """How much longer the runner may take to answer."""
        return round(self._limit.left_s * 1e9)

    @property
    def _doing(self) -> str:
        return f"timing {self._case.name}"

    def _ask(self, command: commands.Command, expect: type[R], descriptors: Sequence[int] = ()) -> R:
        return self._session.ask(command, expect, limit=self._limit, doing=self._doing, descriptors=descriptors)

    def _check(self, batch: Batch, sample: WordSample, where: str) -> None:
        called = range(self.calls)
        if not batch.holds(sample):
            raise SubmissionFault(Outcome.REJECTED, f"{where}: outputs changed after the calls were said to be done")
        if out_of_bounds := batch.out_of_bounds(called):
            raise SubmissionFault(Outcome.REJECTED, f"{where}: call {out_of_bounds.set} {out_of_bounds.text}")
        if wrong := first_wrong(batch, self._case.truth, called):
            raise SubmissionFault(Outcome.WRONG_ANSWER, f"{where}: {describe(wrong)}")


def timed(session: Session, batch: Batch, sample: WordSample, calls: int, limit: TimeLimit, doing: str) -> int:
    """Let the runner make the first calls of a batch, and read the sample; returns the time of both in ns.

    The outputs are mapped before the clock starts, since they contain no secret.

    Raises:
        SubmissionFault, SandboxError: as for `Session.ask`.
    """
    inputs, outputs, *host = batch.descriptors
    time.sleep(_PAUSE_S)
    session.ask(commands.MapOutputs(), replies.Done, limit=limit, doing=doing, descriptors=[outputs])
    command = commands.Round(calls=calls, within_ms=limit.left_ms)
    start = time.perf_counter_ns()
    session.ask(command, replies.Done, limit=limit, doing=doing, descriptors=[inputs, *host])
    batch.take(sample)
    return time.perf_counter_ns() - start
