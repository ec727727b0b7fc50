"""The keys of `problem.toml` that say how far from the truth an answer may be. Trusted; imports no torch."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import ConfigDict, Field, PlainSerializer, model_validator

from harness.problem.keys import Real, SizeExpression, Spec, Whole

Scale = Literal["row", "tensor"]
Precision = Literal["float32", "tf32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"]

_SUM_ULPS = 2.5


class OutputTolerance(Spec):
    """How far one output may be from the truth, if that differs from the other outputs."""

    factor: Real = Field(default=4.0, gt=0, description="times the error of the reference in the problem's own dtype")
    off_by: Whole | None = Field(
        default=None,
        ge=0,
        lt=2**31,
        description="by how many steps of its dtype an element may be off, in place of the budget: 1, or for scales a "
        "factor of 2, or the next float; 0: equal",
    )
    share: Real = Field(default=1.0, gt=0, le=1, description="with `off_by`: the share of elements that may be off")

    @model_validator(mode="after")
    def _share_is_of_what_is_off(self) -> Self:
        if "share" in self.model_fields_set and not self.off_by:
            raise ValueError("`share` is of the elements that may be off: add `off_by`")
        return self

    @model_validator(mode="after")
    def _one_decides(self) -> Self:
        own = self.model_fields_set
        if other := sorted(own & {"factor", "rtol"}) if self.off_by is not None else []:
            raise ValueError(f"`off_by` decides in place of `{other[0]}`: remove one of them")
        return self


def _scale(value: Scale | OutputTolerance) -> Scale:
    return "row" if isinstance(value, OutputTolerance) else value


class Tolerance(OutputTolerance):
    """How far from the truth an answer may be: max(factor × the honest reference's own error, ulps × eps)."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, OutputTolerance] = Field(init=False)
    floor_ulps: Real = Field(default=4.0, gt=0, description="16-bit and narrower outputs: in units of their epsilon")
    accumulation_ulps: Real = Field(
        default=64.0, gt=0, description="the same for float32 and float64 outputs: room for a running sum of 650 terms"
    )
    sum_length: SizeExpression = Field(
        default=1, description="how many terms the longest sum of a call has: `accumulation_ulps` grows with its root"
    )
    rtol: Real | None = Field(default=None, ge=0, description="with `atol`: torch.allclose decides, not the budget")
    atol: Real | None = Field(default=None, ge=0, description="see `rtol`")
    scale: Annotated[Scale | OutputTolerance, PlainSerializer(_scale, return_type=Scale)] = Field(
        default="row",
        description="whose RMS an error is measured by: `tensor` where whole rows are 0 but for rounding; "
        "or the table of an output of that name",
    )
    lower_precision: tuple[Precision, ...] = Field(
        default=(), description="precisions below its own that may pass; the lint reads it, no grading does"
    )

    @model_validator(mode="after")
    def _both_or_neither(self) -> Self:
        if (self.rtol is None) != (self.atol is None):
            raise ValueError("`rtol` and `atol` need each other")
        return self

    @property
    def rms_of(self) -> Scale:
        """By whose RMS the largest error is scaled."""
        return _scale(self.scale)

    @property
    def outputs(self) -> dict[str, OutputTolerance]:
        """The tables of single outputs, by name; a list has one for all of its members."""
        return self.__pydantic_extra__ | ({"scale": self.scale} if isinstance(self.scale, OutputTolerance) else {})

    def of_output(self, name: str) -> Tolerance:
        """The tolerance of an output like `q`, or of a list's member like `q[3]`."""
        own = self.outputs.get(name.partition("[")[0])
        if own is None:
            return self
        factor = own.factor if "factor" in own.model_fields_set else self.factor
        decides = {"factor": factor, "off_by": own.off_by, "share": own.share}
        return self.model_copy(update={**decides, "rtol": None, "atol": None})

    def of_a_sum(self, terms: int) -> Tolerance:
        """The tolerance for a case whose longest sum has this many terms.

        The error of a running sum is a random walk, which grows with the square root of the number of terms. In
        simulated float32 sums of 256 to 131,072 random terms of one sign, its standard deviation was 0.10 to 0.12 ulps
        times that root, and 0.13 to 0.17 if both signs cancel. A quarter of `_SUM_ULPS` (`budget.RMS_SHARE`) is about
        four to six times as much, so such a sum is accepted in nearly every draw, even if a case has only one. Nearly
        equal terms are not a random walk: 131,072 terms between 1 and 1.001 all rounded the same way, by 10 ulps times
        the root, and their plain sum is refused.
        """
        return self.model_copy(update={"accumulation_ulps": max(self.accumulation_ulps, _SUM_ULPS * terms**0.5)})
