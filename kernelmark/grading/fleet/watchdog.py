"""Ends a worker that hangs, so that its dispatcher starts a new one. Trusted."""

from __future__ import annotations

import faulthandler

from harness.problem import Problem

# Beyond the longest step: for the judge's own work between two steps, or another program's use of the device.
_SPARE_S = 1800.0


class Watchdog:
    """A timer of this process. When it runs out, the stacks of all threads go to stderr and the process exits with 1.

    A call into the driver, or into Docker, may never return. The judge enforces a submission's time limits; this
    timer is for the judge itself, so that the dispatcher starts a new worker. Its thread does not need the GIL, so it
    also ends a process in which a call holds the GIL.
    """

    def __init__(self, spare_s: float = _SPARE_S) -> None:
        self._spare_s, self._step_s = spare_s, 0.0

    def expect(self, problem: Problem) -> None:
        """Restart the timer, and from now on allow for the longest step that a grading of this problem can take."""
        limits = problem.limits
        # All hidden tests are one step: no progress is reported in it.
        self._step_s = max(self._step_s, limits.build_s, limits.time_s, limits.call_s * len(problem.tests))
        self.reset()

    def reset(self) -> None:
        """Restart the timer, since the worker has made progress."""
        faulthandler.dump_traceback_later(self._spare_s + self._step_s, exit=True)

    def stop(self) -> None:
        """Stop the timer, since there is no job."""
        faulthandler.cancel_dump_traceback_later()
