"""The keys of `problem.toml` that say how a tensor is filled (`harness.problem.fill`). Trusted; imports no torch."""

from __future__ import annotations

import math
from typing import Literal, Self

from pydantic import Field, model_validator

from harness.problem.expression import parse
from harness.problem.keys import Bound, Real, Spec, Whole

_USED_BY_KIND: dict[str, set[str]] = {
    "normal": {"mean", "scale"},
    "uniform": {"low", "high"},
    "integers": {"low", "high"},
    "choice": {"values"},
    "powers": {"low", "high"},
    "zeros": set(),
    "generated": set(),
}


class Fill(Spec):
    """How a tensor is filled. Unless `generate` makes them, all elements are drawn independently."""

    kind: Literal["normal", "uniform", "integers", "choice", "powers", "zeros", "generated"] = Field(
        description="the distribution; generated: `generate` in reference.py makes the tensor"
    )
    mean: Real = Field(default=0.0, description="normal: the mean")
    scale: Real = Field(default=1.0, gt=0, description="normal: the standard deviation")
    low: Bound = Field(
        default=0, description="uniform, integers: the least value; powers: the least exponent; or an expression"
    )
    high: Bound = Field(
        default=1,
        description="uniform: above every value; integers: the greatest; powers: the greatest exponent; "
        "or an expression",
    )
    values: tuple[Whole | Real, ...] = Field(
        default=(), max_length=256, description="choice: what is drawn from, each as likely as the others"
    )
    neg_inf: Real = Field(default=0.0, ge=0, le=1, description="the fraction of the elements replaced by -inf")

    @model_validator(mode="after")
    def _only_what_the_kind_uses(self) -> Self:
        used = _USED_BY_KIND[self.kind] | ({"kind"} if self.kind == "generated" else {"kind", "neg_inf"})
        for key in sorted(self.model_fields_set - used):
            raise ValueError(f"kind {self.kind!r} does not use `{key}`")
        if self.kind == "choice" and not self.values:
            raise ValueError("kind 'choice' needs `values`")
        for bound in (self.low, self.high):
            if isinstance(bound, str):
                parse(bound, real=self.kind == "uniform")
            elif self.kind in ("integers", "powers") and bound != int(bound):
                raise ValueError(f"kind {self.kind!r} needs whole numbers for `low` and `high`")
        if not (isinstance(self.low, str) or isinstance(self.high, str)):
            self._check_order(self.low, self.high)
        return self

    def _check_order(self, low: float, high: float) -> None:
        if self.kind == "uniform" and not low < high:
            raise ValueError("`low` must be below `high`")
        if self.kind in ("integers", "powers") and low > high:
            raise ValueError("`low` must not be above `high`")

    @property
    def bounds(self) -> tuple[float, float]:
        """`low` and `high` as numbers, in a resolved case."""
        if isinstance(self.low, str) or isinstance(self.high, str):
            raise TypeError("the bounds are expressions: resolve the case first")
        return self.low, self.high

    @property
    def extent(self) -> tuple[float, float]:
        """The least and the greatest value to expect, in a resolved case."""
        match self.kind:
            case "zeros":
                return 0, 0
            case "choice":
                return min(self.values), max(self.values)
            case "powers":
                low, high = (2.0**exponent if exponent < 1024 else math.inf for exponent in self.bounds)
                return low, high
            case "normal":
                # Eight standard deviations, beyond which one element in 10¹⁵ is, so no input overflows to infinity.
                return self.mean - 8 * self.scale, self.mean + 8 * self.scale
        return self.bounds

    def bounded(self, low: float, high: float) -> Fill:
        """The same fill with the values of its expressions.

        Raises:
            ValueError: they are in the wrong order.
        """
        self._check_order(low, high)
        return self.model_copy(update={"low": low, "high": high})
