"""Compares a submission's outputs with the truth, and explains what is wrong with them.

The judge calls `check_output` for every output of every call; the command line prints `describe` and `render`. Trusted
code over untrusted values: any bit pattern may stand in `got`.
"""

from harness.compare.check import all_surely_right, check_output, dtype_name, surely_right
from harness.compare.text import describe, render

__all__ = ["all_surely_right", "check_output", "describe", "dtype_name", "render", "surely_right"]
