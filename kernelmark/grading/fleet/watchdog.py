"""Ends a worker that hangs, so that its dispatcher starts a new one. Trusted."""

from __future__ import annotations

import faulthandler

from harness.problem import Problem

# In addition to the longest step: for the judge's own work between steps, and for other programs on the device.
_SPARE_S = 1800.0


class Watchdog:
    """A timer of this process. When it runs out, the stacks of all threads go to stderr and the process exits with 1.

    The judge enforces the time limits of submissions; this timer limits the judge itself, since a call into the driver
    or Docker may never return. It does not need the GIL, so it also works if that call holds the GIL.
    """

    def __init__(self, spare_s: float = _SPARE_S) -> None:
        self._spare_s, self._step_s = spare_s, 0.0

    def expect(self, problem: Problem) -> None:
        """Restart the timer, and allow from now on for the longest step of a grading of this problem."""
        limits = problem.limits
        # The hidden tests are one step, in which no progress is reported.
        self._step_s = max(self._step_s, limits.build_s, limits.time_s, limits.call_s * len(problem.tests))
        self.reset()

    def reset(self) -> None:
        """Restart the timer: the worker has made progress."""
        faulthandler.dump_traceback_later(self._spare_s + self._step_s, exit=True)

    def stop(self) -> None:
        """Stop the timer: there is no job."""
        faulthandler.cancel_dump_traceback_later()
