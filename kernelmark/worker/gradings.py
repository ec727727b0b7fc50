"""The gradings of a worker: a thread for each lease, which has a judge grade its task and keeps the answer. Trusted."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from contextlib import suppress

from harness.errors import HarnessError, ProblemError, SettingsError, UsageError
from harness.judge import Progress
from harness.judge.setup import ignore
from harness.verdict import Outcome
from kernelmark.grading.fleet.judges import Judges
from kernelmark.grading.fleet.messages import JobAnswer, JobRequest, OnStep, WorkerAway, WorkerLost
from kernelmark.grading.fleet.pool import Devices
from kernelmark.service.submissions import StageProgress
from kernelmark.service.work import Answer, Lease
from kernelmark.text.terminal import say, unexpected, warn
from kernelmark.worker.answers import KeptAnswers, answer_of, failed
from kernelmark.worker.checkout import Checkout, TaskRefused
from kernelmark.worker.fitness import Fitness
from kernelmark.worker.holding import Held, Holding

_TRY_AGAIN_S = 300.0  # after its own kernel has failed
_MACHINES = 3  # to so many, one after the other, a task is given whose machine is lost
_FULL_S = 10.0  # until an answer is written again, where the disk was full


class Gradings:
    """What one start of a worker grades.

    Attributes:
        over: set when the worker ends: from then on nothing is answered.
    """

    def __init__(
        self, instance: str, checkout: Checkout, judges: Judges, kept: KeptAnswers, graded: Callable[[], None]
    ) -> None:
        """`graded` is called after each grading, with or without an answer."""
        self._instance, self._checkout, self._judges, self._kept = instance, checkout, judges, kept
        self._graded = graded
        self.holding, self.fitness, self.over = Holding(), Fitness(), threading.Event()
        self._tried_at = 0.0
        self._last_devices: Devices | None = None

    @property
    def devices(self) -> Devices:
        """What it grades on; while all judges are lost, what it graded on.

        Raises:
            HarnessError: there has been none.
        """
        self._last_devices = self._judges.pool.devices or self._last_devices
        if self._last_devices is None:
            raise HarnessError("the fleet lost its workers while it started")
        return self._last_devices

    @property
    def free(self) -> int:
        """How many more tasks it takes: one for each free slot, and one whose sandboxes can start; none in doubt."""
        return 0 if self.fitness.is_in_doubt else self.devices.slots + 1 - self.holding.being_graded

    def begin(self, lease: Lease) -> None:
        """Grade a task in a thread of its own, unless the lease is held already."""
        held = self.holding.take(lease)
        if held is not None:
            threading.Thread(target=self._grade, args=(held,), name=f"grade {lease.task.run}", daemon=True).start()

    def end(self, lease: str) -> None:
        """End a grading that the server does not want any more."""
        run = self.holding.end(lease)
        if run is not None:
            self._judges.pool.cancel(run)

    def try_itself(self) -> None:
        """Have a kernel of the organizers graded, if there is doubt that anything can be graded here."""
        recently = self.fitness.why_not and time.monotonic() - self._tried_at < _TRY_AGAIN_S
        if not self.fitness.is_in_doubt or recently:
            return
        request = self._checkout.trial(self.fitness.last_problem, self.devices.kind, self._judges.sandbox)
        if request is None:
            warn("harness errors of several authors in a row, and no kernel in reference/ to try this worker with")
            why_not = ""
        else:
            say(f"harness errors of several authors in a row: trying a known kernel of {request.problem}")
            why_not = self._failure(request)
        if self.over.is_set():
            return
        self._tried_at = time.monotonic()
        self.fitness.tried(why_not)
        if why_not:
            warn(f"this worker cannot grade: {why_not}; it claims nothing, and tries again in {_TRY_AGAIN_S:.0f} s")
        with self.holding.changed:
            self.holding.changed.notify_all()

    def _failure(self, request: JobRequest) -> str:
        """Why a kernel that is right is not accepted here; empty if it is."""
        try:
            answer = self._judged(request)
        except (HarnessError, WorkerLost) as error:
            return str(error)
        if answer.check is None:
            return str(answer.failure())
        if answer.check.outcome is Outcome.ACCEPTED:
            return ""
        return f"a known kernel of {request.problem} ends as {answer.check.outcome}: {answer.check.message}"

    def _grade(self, held: Held) -> None:
        task = held.lease.task
        self.holding.begin(held)
        begun = time.monotonic()
        try:
            answer = self._answer(held)
        except Exception as error:  # noqa: BLE001 - the thread ends here, and the server is told
            answer = failed(held.lease, self._instance, HarnessError(unexpected(error)))
        if not self.over.is_set() and not held.is_ended:
            self._keep(answer)
            how = f"no result ({answer.error.what:.200})" if answer.error else "graded"
            say(f"{task.run}: {task.problem}, {task.mode}: {how} after {time.monotonic() - begun:.1f} s")
        self.holding.graded(held)
        self._graded()

    def _answer(self, held: Held) -> Answer:
        lease, task = held.lease, held.lease.task
        try:
            request = self._checkout.request(task, self.devices.kind, self._judges.sandbox)
        except TaskRefused as refused:
            warn(f"{task.run} is not graded here: {refused}")
            return failed(lease, self._instance, refused.error, "worker")
        except UsageError as error:
            return failed(lease, self._instance, error)

        def step(step: Progress) -> None:
            label = step.label[:200]
            progress = StageProgress(stage=step.stage, done=step.done, total=step.total, label=label)
            self.holding.step(held, progress)

        try:
            judged = self._judged_somewhere(request, step, held)
        except (HarnessError, WorkerLost) as error:
            answer = failed(lease, self._instance, error)
        else:
            failure = judged.failure()
            if isinstance(failure, SettingsError) or (  # in kernelmark.toml, here or on the fleet's machine
                isinstance(failure, ProblemError) and self._checkout.has_changed(task, request)
            ):
                return failed(lease, self._instance, failure, "worker")
            answer = answer_of(lease, self._instance, judged)
        self.fitness.ended(task, None if answer.error is None else answer.error.fault)
        return answer

    def _judged_somewhere(self, request: JobRequest, on_step: OnStep, held: Held) -> JobAnswer:
        """What a judge answers, another one if a machine of the fleet was lost; raises as `_judged`."""
        for _ in range(_MACHINES - 1):
            with suppress(WorkerAway):
                return self._judged(request, on_step, held)
        return self._judged(request, on_step, held)

    def _judged(self, request: JobRequest, on_step: OnStep = ignore, held: Held | None = None) -> JobAnswer:
        """What a judge answers.

        Raises:
            HarnessError: no judge has been there for a long time.
            WorkerLost: the judge ended.
        """
        ended = Future[Future[JobAnswer]]()
        alone = held is not None and held.lease.task.alone
        self._judges.pool.hand_over(request, lambda answer, _: ended.set_result(answer), on_step, alone=alone)
        if held is not None and held.is_ended:  # while it was handed over
            self._judges.pool.cancel(request.run)
        try:
            return ended.result().result()
        except CancelledError:
            raise WorkerAway("the worker is ending") from None

    def _keep(self, answer: Answer) -> None:
        """Keep an answer on the disk; if that is full, once there is room."""
        while True:
            try:
                self._kept.put(answer)
            except OSError as error:
                warn(f"an answer cannot be kept in {self._kept.folder} ({error.strerror}); trying again")
                if not self.over.wait(_FULL_S):
                    continue
            return
