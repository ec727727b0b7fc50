"""The resident worker: one process of the same user that waits a few minutes for the next `submit`, `check` or `bench`.

It is a worker of a fleet (`kernelmark.grading.fleet.worker`) with the same messages, at a private socket in place of
pipes. It has torch imported and sandboxes started, holds neither memory of the device nor a turn, gets one job, grades
it as the command would, and ends with it; the command that it served, like any other, leaves the next one behind.
So no state of a grading is seen by the next. Only the command records.
"""
