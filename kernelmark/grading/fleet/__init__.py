"""Grades many submissions at once, on all devices of one machine or of several.

`Fleet` is what callers use. The dispatcher (`dispatch`) runs in their process; each device has a worker (`worker`) in
its own process. `engine` says what the first needs of the second. Nothing here is imported by `kernelmark.grade`.
"""

from kernelmark.grading.fleet.fleet import Fleet, FleetStatus
from kernelmark.grading.fleet.job import Job, JobResult

__all__ = ["Fleet", "FleetStatus", "Job", "JobResult"]
