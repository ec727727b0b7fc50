"""Holds what a runner claims against the judge's own clock, and says which number counts. Pure, trusted.

A claim is finer than the clock, so it counts where the two agree; it never counts for less than the clock allows, up to
a tolerance that follows from the noise of the null rounds (docs/decisions/0005).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness import stats
from harness.verdict import SealedRound

_GAP_NS = 60_000  # a launch and a wake-up of either process, which null rounds do not always repeat exactly
_RELATIVE = 0.02
# A claim below the clock by the tolerance and this share more is no noise. In between it is only not believed.
_ACCUSATION = 0.10


@dataclass(frozen=True)
class Agreement:
    """A case's rounds by both clocks, in ns; all but overhead and noise are per call."""

    overhead_ns: int
    noise_ns: int
    sealed_ns: int
    claimed_ns: int
    tolerance_ns: int

    @classmethod
    def of(cls, rounds: Sequence[SealedRound], null_ns: Sequence[int], overhead_ns: int) -> Agreement:
        noise_ns = round(stats.spread(null_ns))
        sealed_ns = round(stats.median([max(0, r.wall_ns - overhead_ns) / r.calls for r in rounds]))
        claimed_ns = round(stats.median([r.claimed_ns / r.calls for r in rounds]))
        tolerance_ns = round((_GAP_NS + 3 * noise_ns) / rounds[0].calls + _RELATIVE * sealed_ns)
        return cls(overhead_ns, noise_ns, sealed_ns, claimed_ns, tolerance_ns)

    @property
    def accuses(self) -> bool:
        return self.claimed_ns + self.tolerance_ns < (1 - _ACCUSATION) * self.sealed_ns

    def believed(self, rounds: Sequence[SealedRound]) -> list[float]:
        """Each round's time per call: the claim, but never below what the judge's clock allows."""
        least = [max(0, r.wall_ns - self.overhead_ns) / r.calls - self.tolerance_ns for r in rounds]
        return [max(r.claimed_ns / r.calls, low) for r, low in zip(rounds, least, strict=True)]
