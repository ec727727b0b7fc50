"""The resident worker: a process that waits a few minutes for the next `submit`, `check` or `bench` of its user.

It is a fleet's worker (`kernelmark.grading.fleet.worker`) with the same messages, but it listens on a private socket
instead of using pipes. It has imported torch and started sandboxes, and holds no device memory and no lock. It grades
one job as the command itself would, and ends. Each command starts the resident worker for the next one, so no grading
sees the state of another. Only the command records.
"""
