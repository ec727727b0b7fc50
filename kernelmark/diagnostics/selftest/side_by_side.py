"""Tries many cases of the self-test, side by side on a GPU. Trusted.

`kernelmark audit --self-test` calls it. A thread tries a case and waits for each of its verdicts, since how often it is
graded depends on what came before; one fleet grades for all threads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from harness.errors import UsageError
from harness.submission import Submission
from harness.verdict import DeviceKind, SandboxName, Verdict
from kernelmark.diagnostics.selftest import BASELINES, EFFORT, Attempts, KnownSubmission, Trial, graded
from kernelmark.grading.fleet import Fleet, Job

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

    def attempt(attempts: Attempts, case: Chosen) -> Trial:
        trial = attempts.attempt(*case)
        on_trial(trial)
        return trial

    if device == "cpu" or jobs == 1:
        alone = Attempts()
        return [attempt(alone, case) for case in chosen]
    fleet = Fleet(device=device, sandbox=isolation, slots=jobs, devices=1)
    by_fleet = Attempts(partial(graded, by=partial(_verdict, fleet)))
    # The fleet is closed first, so that no thread waits for it after an interruption. There are as many threads as it
    # has room for jobs: what a case asks for next is soon graded.
    with ThreadPoolExecutor(fleet.capacity) as threads, fleet:
        fleet.start()
        begun = [threads.submit(attempt, by_fleet, case) for case in chosen]
        try:
            return [each.result() for each in begun]
        finally:
            threads.shutdown(wait=False, cancel_futures=True)


def _verdict(
    fleet: Fleet, problem: Path, submission: Submission, device: DeviceKind, isolation: SandboxName
) -> Verdict:
    """Let a fleet on this device, in this sandbox, grade a submission, and wait for its verdict.

    Raises:
        UsageError, HarnessError: it could not be graded.
    """
    [result] = fleet.grade_many([Job(problem=problem, submission=submission)], effort=EFFORT, baselines=BASELINES)
    if result.verdict is None:
        assert result.error is not None
        raise result.error
    return result.verdict
