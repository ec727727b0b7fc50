"""Tries many cases of the self-test, several at a time on a GPU. Trusted.

`kernelmark audit --self-test` calls it. A thread tries a case and waits for each of its verdicts, since how often it is
graded depends on what came before; one fleet grades for all threads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from harness.errors import UsageError
from harness.verdict import DeviceKind, SandboxName
from kernelmark.diagnostics.selftest import KnownSubmission, SelfTest, Trial
from kernelmark.grading.fleet.one_by_one import OneByOne, several
from kernelmark.project.settings import Settings

Chosen = tuple[KnownSubmission, DeviceKind, SandboxName]


def attempt_all(
    settings: Settings, chosen: Sequence[Chosen], jobs: int | None, on_trial: Callable[[Trial], None]
) -> list[Trial]:
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
    own = settings.model_copy(update={"sandbox": isolation})
    with several(own, device, jobs, count=len(chosen), devices=1) as grades:
        selftest = SelfTest(lambda *_: grades)

        def attempt(case: Chosen) -> Trial:
            trial = selftest.attempt(*case)
            on_trial(trial)
            return trial

        if isinstance(grades, OneByOne):
            return list(map(attempt, chosen))
        # As many threads as the fleet has room for jobs: what a case asks for next is soon graded. After an
        # interruption the fleet is closed without waiting for them, and then they end.
        threads = ThreadPoolExecutor(grades.capacity)
        try:
            return list(threads.map(attempt, chosen))
        finally:
            threads.shutdown(wait=False, cancel_futures=True)
