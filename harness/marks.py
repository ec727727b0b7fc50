"""The rule by which a course turns results into points: `[marks]` of `kernelmark.toml`, and `marks` of a problem.

The settings and `problem.toml` read it, and `kernelmark.course` applies it. Trusted; pure.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Amount = Annotated[float, Field(strict=True, ge=0, le=1e6)]


class SpeedupPoints(BaseModel):
    """Points for an accepted kernel with at least some speedup."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    over: Amount = Field(description="the least speedup over the first baseline: 1.5")
    points: Amount = Field(description="what it adds; all that are reached add up")


class MarksRule(BaseModel):
    """Points for the share of the tests that are right, times the factor of a late one, and for speedups."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    tests: Amount = Field(description="points if all tests are right")
    hidden: Amount = Field(default=1.0, description="how much a hidden test counts; a visible one counts 1")
    speedup: tuple[SpeedupPoints, ...] = Field(default=(), max_length=32, description="points for speedups")

    @property
    def most(self) -> float:
        """The most points that a kernel can get."""
        return self.tests + sum(step.points for step in self.speedup)
