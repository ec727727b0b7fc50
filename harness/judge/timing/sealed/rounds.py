"""Makes single sealed rounds: the judge's clock around calls on inputs that did not exist before it started. Trusted.

One round: the judge fills fresh arenas that the runner has no mapping of, draws which calls run and in which order, and
has the runner assemble them. Then the clock starts, the descriptors go out, the runner maps them, launches,
synchronizes and answers; the judge takes a secret sample of the outputs and stops the clock. Afterwards it copies all
outputs into private memory, where every one must be right and the sample must not have changed. A null round with no
call drawn measures what this costs besides the calls. `sealed = (wall - overhead) / calls` rests on the judge's clock:
the inputs did not exist for the runner before the clock started, and when it stopped the outputs were there
(docs/decisions/0003). docs/threat-model.md says what can still be gained.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from pathlib import Path

from harness import wire
from harness.compare import describe
from harness.device import DEVICES, Sensors
from harness.judge.correctness.batch import Batch, Sample
from harness.judge.correctness.cases import first_wrong
from harness.judge.correctness.graded_case import GradedCase
from harness.judge.session import Session, SubmissionFault
from harness.judge.session.conversation import R
from harness.judge.session.time_limit import TimeLimit
from harness.judge.timing.sealed.overhead import null_round
from harness.verdict import Outcome, SealedRound


class Rounds:
    """Sealed rounds of one benchmark case in one session; `prepare` sets their size.

    `limit` is what remains of the case's `time_s`, which includes the single calls before.
    """

    def __init__(
        self,
        session: Session,
        case: GradedCase,
        sensors: Sensors,
        limit: TimeLimit,
    ) -> None:
        self._session, self._case, self._sensors, self._limit = session, case, sensors, limit
        self._random = random.SystemRandom()
        self._sets = 0

    def prepare(self, sets: int) -> wire.Captured:
        """Let the runner prepare `sets` calls on practice memory, at the addresses that secret memory will have.

        Raises:
            SubmissionFault: the submission failed, or its time is used up.
        """
        self._sets = sets
        practice = self._case.batch(sets)
        try:
            self._case.bind(self._session, practice, limit=self._limit, doing=f"timing {self._case.name}")
            self._ask(wire.Call(sets=(0,)), wire.Done)
            captured = self._ask(wire.Capture(), wire.Captured)
            device = DEVICES[self._case.device]
            if captured.graphs and not device.captures:
                why = f"says that it captured its calls, which a {device.name} cannot"
                raise SubmissionFault(Outcome.REJECTED, why)
            self._ask(wire.Unmap(), wire.Done)
            return captured
        finally:
            practice.close_arenas()

    def play(self, where: str, *, checked: bool = True) -> tuple[SealedRound, int]:
        """One sealed round, and a null round of the same size, in ns by the judge's clock.

        Raises:
            SubmissionFault: an output was wrong, or the runner failed; `where` names the round.
        """
        order = self._draw()
        batch = self._case.batch(self._sets)
        try:
            played = self._round(batch, order, where, checked=checked)
            # Last, so that it finds both processes as the real round did: idle for a while, with cold caches.
            null_ns = null_round(self._session, batch, self._limit, f"timing {self._case.name}")
        finally:
            batch.close_arenas()
        return played, null_ns

    def play_alone(self, where: str, *, checked: bool = True) -> SealedRound:
        """One sealed round without a null round, for a runner whose claims are believed."""
        batch = self._case.batch(self._sets)
        try:
            return self._round(batch, self._draw(), where, checked=checked)
        finally:
            batch.close_arenas()

    def _round(self, batch: Batch, order: list[int], where: str, *, checked: bool) -> SealedRound:
        sample = batch.draw_sample(order)
        inputs, outputs, *host = batch.descriptors
        self._ask(wire.Assemble(order=tuple(order)), wire.Done, [outputs])
        waited_ns, start = _waited_ns(), time.perf_counter_ns()
        timed = self._ask(wire.Round(), wire.Timed, [inputs, *host])
        batch.take(sample)
        wall_ns = time.perf_counter_ns() - start
        held_up_ns = _waited_ns() - waited_ns
        telemetry = self._sensors.read()
        batch.snapshot()
        self._ask(wire.Unmap(), wire.Done)
        if checked:
            self._check(batch, order, sample, where)
        return SealedRound(
            calls=len(order),
            sets=self._sets,
            seed=batch.seed,
            wall_ns=wall_ns,
            claimed_ns=timed.claimed_ns,
            claimed_span_ns=timed.span_ns,
            held_up_ns=held_up_ns,
            telemetry=telemetry,
        )

    def _ask(self, command: wire.Command, expect: type[R], descriptors: Sequence[int] = ()) -> R:
        doing = f"timing {self._case.name}"
        return self._session.ask(command, expect, limit=self._limit, doing=doing, descriptors=descriptors)

    def _draw(self) -> list[int]:
        """Draw the calls of a round and their order; some are left out, and their outputs must stay untouched."""
        left_out = max(1, self._sets // 16) if self._sets > 1 else 0
        return self._random.sample(range(self._sets), self._sets - left_out)

    def _check(self, batch: Batch, order: list[int], sample: Sample, where: str) -> None:
        if not batch.holds(sample):
            raise SubmissionFault(Outcome.REJECTED, f"{where}: outputs changed after the calls were said to be done")
        if out_of_bounds := batch.out_of_bounds(order):
            raise SubmissionFault(Outcome.REJECTED, f"{where}: call {out_of_bounds.set} {out_of_bounds.text}")
        if wrong := first_wrong(batch, self._case.truth, order):
            raise SubmissionFault(Outcome.WRONG_ANSWER, f"{where}: {describe(wrong)}")


def _waited_ns() -> int:
    """How long this thread has been runnable without a CPU, by the kernel's account; 0 if it keeps none."""
    try:
        return int(Path("/proc/thread-self/schedstat").read_text().split()[1])
    except (OSError, ValueError, IndexError):
        return 0
