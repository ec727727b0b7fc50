"""Grades jobs one after the other in this process, with the methods of a fleet. Trusted.

`several` chooses between this and a fleet, which refuses a sandbox that does not isolate, and which for one job at a
time would only start another process.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from harness.errors import HarnessError, KernelmarkError
from harness.judge.setup import ignore
from harness.kinds import DeviceKind, Effort, isolates
from harness.sandbox import choose
from kernelmark.grading.fleet.fleet import Fleet
from kernelmark.grading.fleet.job import Job, JobResult, prepared
from kernelmark.grading.setup import OnProgress, PreparedJob
from kernelmark.project.choice import providers
from kernelmark.project.project import Project
from kernelmark.project.settings import Settings
from kernelmark.text.terminal import unexpected, warn

TESTED_AT_A_TIME = min(8, len(os.sched_getaffinity(0)))
"""How many submissions are tested at a time on a CPU where nothing is timed."""


class OneByOne:
    """Grades each job before it reads the next one; results come in the order of the jobs, and none is a copy."""

    def __init__(self, settings: Settings, on_progress: OnProgress = ignore) -> None:
        self._settings, self._on_progress = settings, on_progress

    def grade_many(
        self,
        jobs: Iterable[Job],
        *,
        effort: Effort = "quick",
        baselines: Sequence[str] | None = None,
        reuse: bool = False,
    ) -> Iterator[JobResult]:
        """As `Fleet.grade_many`, but every job is graded: `reuse` is ignored."""
        names = self._settings.baselines if baselines is None else tuple(baselines)
        settings = self._settings.model_copy(update={"effort": effort, "baselines": names})
        return _results(jobs, settings, lambda own: {"verdict": own.grade(self._on_progress)})

    def check_many(self, jobs: Iterable[Job]) -> Iterator[JobResult]:
        """As `Fleet.check_many`."""
        return _results(jobs, self._settings, lambda own: {"check": own.check(self._on_progress)})


Grades = Fleet | OneByOne
"""Grades many submissions."""


@contextlib.contextmanager
def several(
    settings: Settings,
    device: DeviceKind,
    jobs: int | None,
    *,
    count: int | None,
    times: bool = True,
    devices: int | None = None,
    on_progress: OnProgress = ignore,
) -> Iterator[Grades]:
    """Provide a fleet for this kind of device, or this process where a fleet is of no use.

    Args:
        jobs: how many jobs each device grades at a time. None: on a GPU as many as a fleet chooses, as a kernel that is
            timed has the GPU to itself; on a CPU one, as other jobs would disturb its times.
        count: the number of all jobs, if it is known; no fleet is started for one job.
        times: whether anything is timed; if not, a CPU also grades several at a time.
        devices: how many devices to use; None: as many as there are jobs.
        on_progress: called before every step, but only if the jobs are graded in this process.

    Raises:
        SandboxError: no sandbox can be used here.
    """
    slots = jobs
    if slots is None and device == "cpu":
        slots = 1 if times else TESTED_AT_A_TIME
    alone = slots == 1 or (count is not None and count <= 1)
    sandbox = None if alone else choose(settings.sandbox, providers(settings)).name
    if sandbox is not None and isolates(sandbox):
        project = Project.of(settings)
        with Fleet(device=device, sandbox=sandbox, slots=slots, devices=devices or count, project=project) as fleet:
            yield fleet
        return
    if not alone and jobs is not None:
        warn(f"the sandbox {sandbox} does not isolate, so submissions are graded one after the other")
    yield OneByOne(settings.model_copy(update={"device": device}), on_progress)


def _results(
    jobs: Iterable[Job], settings: Settings, grade: Callable[[PreparedJob], dict[str, Any]]
) -> Iterator[JobResult]:
    """Yield the result of each job, or the error that grading it raised."""
    for job in jobs:
        begun = time.monotonic()
        try:
            found = grade(prepared(settings, job))
        except KernelmarkError as error:
            found = {"error": error}
        except Exception as error:  # noqa: BLE001 - one failure must not keep the others from being graded
            found = {"error": HarnessError(unexpected(error))}
        yield JobResult(job=job, seconds=time.monotonic() - begun, **found)
