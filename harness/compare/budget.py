"""Decides how far an output may be from the truth: the floors, the ceiling, and the rule that combines them.

Called by `check.py`. Trusted. The numbers below were chosen by experiment.
"""

from __future__ import annotations

import sys

import torch

from harness.problem.elements import info
from harness.problem.tolerance import Tolerance
from harness.verdict import Budget

# float16 and bfloat16 problems accumulate in float32, so the only error is from rounding the output once:
# relative RMS 0.21 eps, at most 0.5 eps. A few ulps suffice, and more would accept the next format down (bfloat16 in a
# float16 problem: RMS 1.7 eps). float32 and float64 have no wider accumulator in common use, and the order of the sum
# determines the error. One accumulator over 4096 products gives RMS 9.7 eps, maximum 41 eps, where the reference's
# blocked sum gives 2.2 and 10.5 (for positive summands 7.2 and 26 against 0.7 and 2.5, beyond any small factor). TF32
# gives RMS 2400 eps; even with 4096 positive summands, where its errors average out best, 45 and 161. The default of 64
# ulps (RMS 16) lies between the two. The floor grows with the length of the sum (`Tolerance.of_a_sum`), so that whether
# a single accumulator over 16384 products (RMS 19 eps) passes seldom depends on the draw.
ACCUMULATORS = (torch.float32, torch.float64, torch.complex64, torch.complex128)

# The relative RMS of evenly spread rounding errors is 4 to 5 times smaller than their maximum.
RMS_SHARE = 0.25

# An output of zeros has an error of exactly 1 by both metrics. Whatever factor a problem states, and however inaccurate
# its reference is in the problem's dtype, half of the value is never a rounding error.
CEILING = 0.5


def maximum_floor(dtype: torch.dtype, tolerance: Tolerance) -> float:
    """The normalised maximum error that is always allowed, as a fraction of the element's scale."""
    ulps = tolerance.accumulation_ulps if dtype in ACCUMULATORS else tolerance.floor_ulps
    return ulps * info(dtype).eps


def rms_floor(dtype: torch.dtype, tolerance: Tolerance) -> float:
    """The relative RMS error that is always allowed."""
    return RMS_SHARE * maximum_floor(dtype, tolerance)


def budget(error: float, reference_error: float, tolerance: Tolerance, floor: float) -> Budget:
    """Compare one metric of the submission with the same metric of the honest reference."""
    allowed = min(max(tolerance.factor * reference_error, floor), CEILING)
    return Budget(
        # If the metric overflows (1e300 where 1e-300 is expected) or is NaN, the largest number replaces it, since JSON
        # has neither. `min` returns its first argument unless another is smaller, which NaN never is.
        error=min(sys.float_info.max, error),
        allowed=allowed,
        reference_error=min(sys.float_info.max, reference_error),
        factor=tolerance.factor,
        floor=floor,
    )
