"""Runs one test of a problem in this very process, for the author of a submission: prints and `breakpoint()` work.

Nothing isolates the submission here, and nothing is timed or recorded. The judge's own code makes the inputs and checks
the outputs, and the runner's own code makes the call. Started as a program, `python -m harness.debug`, by `kernelmark
debug`.
"""
