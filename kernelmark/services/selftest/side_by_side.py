"""Tries many cases of the self-test, side by side on a GPU. Trusted.

`kernelmark audit --self-test` calls it. A thread tries one case after the other and waits for each verdict, since how
often a case is graded depends on what came before; one fleet grades for all threads.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from queue import SimpleQueue

from harness.errors import UsageError
from harness.submission import Submission
from harness.verdict import DeviceKind, SandboxName, Verdict
from kernelmark.services.fleet import Fleet, Job
from kernelmark.services.selftest import BASELINES, EFFORT, Attempts, KnownSubmission, Trial, graded

Chosen = tuple[KnownSubmission, DeviceKind, SandboxName]


def attempt_all(chosen: Sequence[Chosen], jobs: int | None, on_trial: Callable[[Trial], None]) -> list[Trial]:
    """Try all cases, `jobs` at a time on a GPU; `on_trial` is called with each result, in any order and any thread.

    On a CPU it is one after the other: some cases use up its time or look for what others have left on the machine.
    Only the first of several GPUs is used: two differ by more than an attack may differ from its honest twin.

    Raises:
        UsageError: several at a time were asked for on a CPU.
        HarnessError: the GPU's worker did not start.
    """
    _, device, isolation = chosen[0]
    if device == "cpu" and jobs not in (None, 1):
        what = "the self-test tries one case at a time on a CPU, since cases would disturb each other"
        raise UsageError(f"--jobs {jobs}", what, "leave it out")
    if device == "cpu" or jobs == 1:
        attempts, trials = Attempts(), []
        for each in chosen:
            trials.append(attempts.attempt(*each))
            on_trial(trials[-1])
        return trials
    with Fleet(device=device, sandbox=isolation, slots=jobs, devices=1) as fleet:
        return _beside_each_other(fleet, chosen, on_trial)


def _beside_each_other(fleet: Fleet, chosen: Sequence[Chosen], on_trial: Callable[[Trial], None]) -> list[Trial]:
    verdicts = _Verdicts()
    attempts = Attempts(partial(graded, by=verdicts.of))

    def attempt(each: Chosen) -> Trial:
        trial = attempts.attempt(*each)
        on_trial(trial)
        return trial

    # As many threads as the fleet has room for jobs: what a case asks for next is soon graded.
    with ThreadPoolExecutor(fleet.capacity) as threads:
        try:
            begun = [threads.submit(attempt, each) for each in chosen]
            verdicts.grade_until_done(fleet, begun)
        finally:  # interrupted: no thread may wait for a verdict that does not come
            verdicts.close()
            threads.shutdown(wait=False, cancel_futures=True)
    return [each.result() for each in begun]


class _Verdicts:
    """The verdicts of one call of `grade_many`, each for the thread that asked for it."""

    def __init__(self) -> None:
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._lock, self._closed = threading.Lock(), False
        self._waiting: set[Future[Verdict]] = set()

    def of(self, problem: Path, submission: Submission, device: DeviceKind, isolation: SandboxName) -> Verdict:
        """Wait for the verdict; the fleet knows the device and the sandbox.

        Raises:
            UsageError, HarnessError: it could not be graded.
            CancelledError: nobody grades any more.
        """
        answer = Future[Verdict]()
        with self._lock:
            self._waiting.add(answer)
            if self._closed:
                answer.cancel()
        self._jobs.put(Job(problem=problem, submission=submission, key=answer))
        return answer.result()

    def grade_until_done(self, fleet: Fleet, askers: Sequence[Future[Trial]]) -> None:
        """Grade what is asked for, until all who ask are done."""
        left = list(askers)

        def done(asker: Future[Trial]) -> None:
            with self._lock:
                left.remove(asker)
                if not left:
                    self._jobs.put(None)

        for each in askers:
            each.add_done_callback(done)
        jobs = iter(self._jobs.get, None)
        for result in fleet.grade_many(jobs, effort=EFFORT, baselines=BASELINES, reuse=False):
            answer = result.job.key
            assert isinstance(answer, Future)
            with self._lock:
                self._waiting.discard(answer)
            if result.verdict is not None:
                answer.set_result(result.verdict)
            else:
                answer.set_exception(result.error)

    def close(self) -> None:
        """Let nobody wait any more."""
        with self._lock:
            self._closed = True
            for each in self._waiting:
                each.cancel()
