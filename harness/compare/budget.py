"""How far an output may lie from the truth: the floors, the ceiling, and the rule that joins them.

`check.py` calls it. Trusted. The numbers below were chosen by experiment; `tests/unit/test_compare.py` holds the table.
"""

from __future__ import annotations

import sys

import torch

from harness.problem.spec import Tolerance
from harness.verdict import Budget

# float16 and bfloat16 problems accumulate in float32, so that rounding the output once is all the error there is:
# relative RMS 0.21 eps, at most 0.5 eps. A few ulps suffice, and more would let the next format down pass (bfloat16 in
# a float16 problem: RMS 1.7 eps). float32 and float64 have no wider accumulator in common use, and the order of the sum
# decides. One accumulator over 4096 products gives RMS 9.7 eps, maximum 41 eps, where the reference's blocked sum gives
# 2.2 and 10.5 (for positive summands 7.2 and 26 against 0.7 and 2.5, out of reach of any small factor). TF32 gives RMS
# 2400 eps; even with 4096 positive summands, where its errors average out best, 45 and 161. The default of 64 ulps (RMS
# 16) stands between the two. The floor of longer sums grows with them (`Tolerance.of_a_sum`), so that the draw seldom
# decides whether a single accumulator over 16384 products (RMS 19 eps) passes.
ACCUMULATORS = (torch.float32, torch.float64)

# The relative RMS of evenly spread rounding errors lies 4 to 5 times below their maximum.
RMS_SHARE = 0.25

# Zeros have an error of exactly 1 by both metrics. Whatever factor a problem states, and however badly its reference
# does in the problem's dtype, half the value itself is never a rounding error.
CEILING = 0.5


def maximum_floor(dtype: torch.dtype, tolerance: Tolerance) -> float:
    """The normalised maximum error that is always allowed, as a fraction of the element's scale."""
    ulps = tolerance.accumulation_ulps if dtype in ACCUMULATORS else tolerance.floor_ulps
    return ulps * torch.finfo(dtype).eps


def rms_floor(dtype: torch.dtype, tolerance: Tolerance) -> float:
    """The relative RMS error that is always allowed."""
    return RMS_SHARE * maximum_floor(dtype, tolerance)


def budget(error: float, reference_error: float, tolerance: Tolerance, floor: float) -> Budget:
    """Hold one metric of the submission against the same metric of the honest reference."""
    allowed = min(max(tolerance.factor * reference_error, floor), CEILING)
    return Budget(
        error=_finite(error),
        allowed=allowed,
        reference_error=_finite(reference_error),
        factor=tolerance.factor,
        floor=floor,
    )


def _finite(value: float) -> float:
    # An overflow of the metric itself (1e300 where 1e-300 is expected) is as wrong as can be, and JSON has no infinity.
    return value if value <= sys.float_info.max else sys.float_info.max
