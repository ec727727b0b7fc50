"""A problem: its `problem.toml` as checked data, its reference, and how its inputs are filled; trusted.

Everything re-exported here is cheap to import. `harness.problem.reference` and `harness.problem.fill` import torch and
are imported by name where they are used.
"""

from harness.problem.dtypes import DType
from harness.problem.load import load
from harness.problem.problem import Problem
from harness.problem.resolve import ResolvedCase, ResolvedScalar, ResolvedTensor
from harness.problem.spec import (
    Case,
    Cost,
    DeviceKind,
    Fill,
    Limits,
    Role,
    ScalarSpec,
    TensorSpec,
    Tolerance,
)

__all__ = [
    "Case",
    "Cost",
    "DType",
    "DeviceKind",
    "Fill",
    "Limits",
    "Problem",
    "ResolvedCase",
    "ResolvedScalar",
    "ResolvedTensor",
    "Role",
    "ScalarSpec",
    "TensorSpec",
    "Tolerance",
    "load",
]
