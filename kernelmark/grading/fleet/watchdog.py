"""Ends a worker that hangs, so that its dispatcher starts a new one. Trusted."""

from __future__ import annotations

import faulthandler

from harness.problem import Problem

_SPARE_S = 1800.0  # for the judge's own work between two steps of a grading, or another program's use of the device


class Watchdog:
    """A timer of this process. When it runs out, the stacks of all threads go to stderr and the process ends with 1.

    A call into the driver, or into Docker, may never return. The judge enforces a submission's time limits; this one
    is for the judge itself, so that the dispatcher starts a new worker. The timer is a thread that needs no GIL: it
    also ends a process in which a call keeps it.
    """

    def __init__(self, spare_s: float = _SPARE_S) -> None:
        self._spare_s, self._step_s = spare_s, 0.0

    def expect(self, problem: Problem) -> None:
        """Give it the time that the longest step of this problem may take, from now on."""
        limits = problem.limits
        # All hidden tests are one step: no progress is reported in it.
        self._step_s = max(self._step_s, limits.build_s, limits.time_s, limits.call_s * len(problem.tests))
        self.reset()

    def reset(self) -> None:
        """Something has happened: start the timer again."""
        faulthandler.dump_traceback_later(self._spare_s + self._step_s, exit=True)

    def stop(self) -> None:
        """There is nothing to do."""
        faulthandler.cancel_dump_traceback_later()
