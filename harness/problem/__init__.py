"""A problem: its `problem.toml` as checked data, its reference, and how its inputs are filled. Trusted.

The names exported here are cheap to import. `harness.problem.reference` and `harness.problem.fill` import torch, so
they are imported only where they are used.
"""

from harness.problem.fill_spec import Fill
from harness.problem.load import load
from harness.problem.problem import Problem
from harness.problem.resolve import ResolvedCase, ResolvedTensor
from harness.problem.spec import Case, Limits
from harness.problem.tolerance import Tolerance

__all__ = ["Case", "Fill", "Limits", "Problem", "ResolvedCase", "ResolvedTensor", "Tolerance", "load"]
