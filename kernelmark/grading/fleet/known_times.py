"""The times of baselines on one device, which its workers measure once and share. Trusted."""

from __future__ import annotations

import contextlib
import fcntl
import threading
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from harness.errors import HarnessError
from harness.judge.timing.overall import KnownTimes, known_speedups, no_baseline
from harness.kinds import DeviceKind
from harness.submission import Submission
from harness.verdict import Outcome, Verdict
from kernelmark.grading.setup import PreparedJob
from kernelmark.project.problems import find_baselines
from kernelmark.project.settings import Settings

_FOUND: TypeAdapter[KnownTimes | str] = TypeAdapter(KnownTimes | str)


class KnownBaselines:
    """The times of baselines, by which a screen's speedups are computed; any thread of a worker may use it."""

    def __init__(self, folder: Path | None, measure: Callable[[PreparedJob], KnownTimes | str]) -> None:
        """
        Args:
            folder: where the workers of the device share the times; None: this worker shares with no other.
            measure: times a baseline, or returns why it cannot be timed.
        """
        self._folder, self._measure, self._lock = folder, measure, threading.Lock()
        self._known: dict[tuple[str, str, DeviceKind], Future[KnownTimes | str]] = {}

    def compared(self, settings: Settings, job: PreparedJob, verdict: Verdict) -> Verdict:
        """Add to a screen's verdict its speedups over the known times of baselines, or a doubt where there is none."""
        automatic = settings.model_copy(update={"effort": "default"})
        found_baselines = find_baselines(automatic, job.problem, job.device)
        baselines = {job.problem.baseline_label(baseline.stem): baseline for baseline in found_baselines}
        found = dict[str, object]({"requested_baselines": tuple(baselines)})
        if verdict.outcome is Outcome.ACCEPTED:
            known = {name: self._times(job, baseline) for name, baseline in baselines.items()}
            times = [measured for measured in known.values() if isinstance(measured, KnownTimes)]
            speedups = tuple(known_speedups(verdict, times))
            missing = known.keys() - {speedup.baseline for speedup in speedups}
            doubts = (no_baseline(name, _why(known[name], verdict)) for name in known if name in missing)
            found |= {"speedups": speedups, "doubts": (*verdict.doubts, *doubts)}
        return verdict.model_copy(update=found)

    def _times(self, job: PreparedJob, baseline: Submission) -> KnownTimes | str:
        """The times of a baseline on this device, or why there are none."""
        if job.problem.of_baseline(baseline.stem) is not job.problem:
            return "it computes something else, and is only timed in alternation with a submission"
        key, mine = (job.problem.sha256, baseline.sha256, job.device), Future[KnownTimes | str]()
        with self._lock:
            known = self._known.setdefault(key, mine)
        if known is mine:  # this is the first job that needs it
            baseline_job = PreparedJob(job.settings, job.problem, baseline)
            try:
                mine.set_result(once(self._folder, ".".join(key), lambda: self._measure(baseline_job)))
            except BaseException as error:
                mine.set_result(f"could not be timed: {error}")
                with self._lock:
                    del self._known[key]  # the failure was ours: the next job tries again
                if not isinstance(error, HarnessError):
                    raise
        return known.result()


def _why(known: KnownTimes | str, verdict: Verdict) -> str:
    """Why there is no speedup over a baseline with these times."""
    if isinstance(known, str):
        return known
    if known.timing == verdict.timing:
        return "it was not timed in the same case"
    return f"its time is one of {known.timing}, and the submission's one of {verdict.timing}"


def once(folder: Path | None, name: str, measure: Callable[[], KnownTimes | str]) -> KnownTimes | str:
    """The times that another worker stored under `name`; if there are none, call `measure` and store its result.

    A lock lets one worker measure at a time. If that worker fails or is killed, the next one measures. Without a
    folder, or if it cannot be used, every worker measures for itself.
    """
    if folder is None:
        return measure()
    file = folder / name
    with contextlib.ExitStack() as held:
        with contextlib.suppress(OSError):
            lock = held.enter_context(file.with_name(f"{name}.lock").open("wb"))
            fcntl.flock(lock, fcntl.LOCK_EX)
        with contextlib.suppress(OSError, ValidationError):
            return _FOUND.validate_json(file.read_bytes())
        found = measure()
        with contextlib.suppress(OSError):
            file.write_bytes(_FOUND.dump_json(found))
        return found
