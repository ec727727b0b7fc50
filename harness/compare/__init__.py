"""Compares a submission's outputs with the truth, and explains what is wrong with them.

The judge calls `check_output` for every output of every call; the command line prints `describe`. This is trusted code
that reads untrusted values: `got` may contain any bit pattern.
"""

from harness.compare.check import all_pass_fast_check, check_by, check_close, check_output, is_close, passes_fast_check
from harness.compare.mismatch import describe
from harness.compare.steps import beyond_steps
