"""What a problem asks for, in words: its C functions, and what decides whether an answer is right. Trusted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from harness.problem.prototype import prototypes
from kernelmark.text.terminal import INDENT

if TYPE_CHECKING:
    from harness.problem import Problem


def functions(spec: Problem) -> Iterator[str]:
    """The first C function of a CUDA file, or of a C++ one if no case runs CUDA; the others differ in their dtypes."""
    for suffix in ("cu", "cpp"):
        if declared := prototypes(spec, suffix):
            first, *others = declared
            likewise = f"; likewise {', '.join(others)}" if others else ""
            without = "; a .cpp gets no stream" if suffix == "cu" and prototypes(spec, "cpp") else ""
            yield f"{INDENT}{'C':<10}  {declared[first]}{likewise}{without}"
            return


def tolerance(spec: Problem) -> str:
    """What decides whether an answer is right."""
    allowed = spec.tolerance
    match spec.decided_by:
        case "reference":
            return "the imported reference checks answers itself"
        case "compare":
            return "`compare` in reference.py decides"
        case "allclose":
            return f"{allowed.atol:g} + {allowed.rtol:g} × |expected| for each element"
    equal = f"{', '.join(f'`{name}`' for name in spec.exact_outputs)} must be equal" if spec.exact_outputs else ""
    if len(spec.exact_outputs) == sum(each.role != "input" for each in spec.tensors):
        return equal
    also = f"; {equal}" if equal else ""
    own = "" if spec.foreign else f"{allowed.factor:g} × the reference's own error, at least "
    grows = "" if allowed.sum_length == 1 else f", and more for long sums, here of {allowed.sum_length} terms"
    floor = f"{allowed.floor_ulps:g} ulps of the output's dtype ({allowed.accumulation_ulps:g} of float32{grows})"
    return own + floor + also
