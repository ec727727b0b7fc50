"""One line for an output's check.

The command line calls it. Trusted. Needs no torch, since it also prints stored verdicts.
"""

from __future__ import annotations

from harness.problem.dtypes import DTYPES
from harness.verdict import Budget, Mismatch, OutputCheck


def describe(check: OutputCheck) -> str:
    """One line: how far an output is from the truth and how far it may be, by the tighter of its two metrics."""
    mismatch = check.mismatch
    if mismatch and not mismatch.wrong:
        return mismatch.hints[0]  # the problem's own `compare` counts nothing, and gives a reason, of any output
    if mismatch and mismatch.whole:
        return f"{check.output}: {'never written' if mismatch.whole == 'unwritten' else 'all zeros'}"
    if mismatch and mismatch.allowed:
        return f"{check.output}: {_wrong(mismatch)}: further from what is expected than {mismatch.allowed}"
    if check.max_error is None or check.rms_error is None:
        return f"{check.output}: " + (f"{_wrong(mismatch)}, but all must be equal" if mismatch else "equal")
    tighter = max((check.max_error, check.rms_error), key=lambda budget: budget.error / budget.allowed)
    if mismatch and tighter.met:
        return f"{check.output}: NaN or infinity in the wrong place, {_wrong(mismatch)}"
    metric = "relative RMS error" if tighter is check.rms_error else "relative error"
    allowed = f"allowed {tighter.allowed:.2g} ({_reason(tighter, check.dtype)})"
    line = f"{check.output}: your {metric} {tighter.error:.2g}, {allowed}"
    return f"{line}, {_wrong(mismatch)}" if mismatch else line


def _wrong(mismatch: Mismatch) -> str:
    return f"{mismatch.wrong:,} of {mismatch.total:,} elements wrong ({mismatch.percent:.3g} %)"


def _reason(budget: Budget, dtype: str) -> str:
    if budget.allowed < max(budget.floor, budget.factor * budget.reference_error):
        return "never more than half of the value"
    if budget.allowed > budget.floor:
        return f"{budget.factor:g} × the reference's own in {dtype}"
    ulps = budget.floor / DTYPES[dtype].eps
    return f"{f'{ulps:,.0f}' if ulps >= 10 else f'{ulps:.2g}'} ulps of {dtype}"
