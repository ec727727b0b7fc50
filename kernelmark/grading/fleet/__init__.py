"""Grades many submissions at once, on all devices of one machine or of several.

Callers use `Fleet`. The dispatcher (`dispatch`) runs in their process, and each device has one or more workers
(`worker`) in processes of their own. `messages` has what they send each other. `kernelmark.grade` uses none of this.
"""

from kernelmark.grading.fleet.fleet import Fleet, FleetStatus
from kernelmark.grading.fleet.job import Job, JobResult

__all__ = ["Fleet", "FleetStatus", "Job", "JobResult"]
