"""Compares a runner's claims with the judge's own clock, and decides which number counts. Pure, trusted.

A claim is finer than the clock, so it counts where the two agree; in no round does it count for less than the clock
allows, up to a tolerance that follows from the noise of the null rounds (docs/decisions/0005).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from harness import stats
from harness.verdict import SealedRound

WIDEST = 0.20  # of the sealed time: a tolerance beyond this is not granted
_WANTED = 0.10  # of the sealed time: batches are made long enough for this tolerance, if memory allows
_GAP_NS = 60_000  # a launch and a wake-up of either process, on a GPU
_RELATIVE = 0.01
# The standard error of a median of n values is 1.25 σ/√n, and the spread from 10 % to 90 % of a normal law is 2.56 σ.
_SPREAD_TO_SE = 1.25 / 2.56
_SURE = 3.0  # standard errors
# A claim below the clock by more than the tolerance and this share is not noise. In between it is merely not believed.
_REJECTED_BELOW = 0.10
# How much slower null rounds may become by themselves. On an H200 they took 0.60 ms before a submission was loaded and
# 0.68 ms after; 0.85 to 0.95 ms where the runner held 1500 captured calls, whose launch takes that much longer.
_DRIFT = 1.25
_CAPTURED_NS = 200  # for each captured call
_FEWEST = 6  # rounds for an interval of 95 %


def median_error_ns(noise_ns: float, samples: int) -> float:
    """The error of the median of noisy samples, given their spread from 10 % to 90 %."""
    return _SURE * _SPREAD_TO_SE * noise_ns / math.sqrt(samples)


@dataclass(frozen=True)
class Gap:
    """What a round takes beyond a null round and its calls, in ns, since a null round does not repeat it exactly."""

    usual_ns: int
    error_ns: int
    """The error of `usual_ns`."""


ON_A_GPU = Gap(usual_ns=0, error_ns=_GAP_NS)


def _uncertain_ns(noise_ns: float, rounds: int, nulls: int, gap: Gap) -> float:
    """The error of (wall - overhead) of a batch, both being medians."""
    return gap.error_ns + math.hypot(median_error_ns(noise_ns, rounds), median_error_ns(noise_ns, nulls))


def shortest_batch_ns(noise_ns: int, rounds: int, gap: Gap) -> int:
    """How long a batch must last for a tolerance of a tenth of it, given the noise of the null rounds."""
    return round(_uncertain_ns(noise_ns, rounds, rounds, gap) / (_WANTED - _RELATIVE))


@dataclass(frozen=True)
class Bounds:
    """Bounds from rounds before the submission arrived, in ns: nothing it does can widen them."""

    low_ns: int
    """The least that the overhead can be, `gap` included, as in `usual_ns`."""
    usual_ns: int
    spread_ns: int
    """The noise to expect."""
    noise_ns: int
    """The most that is believed."""
    captured: int = 0
    """How many calls the runner has captured."""
    gap: Gap = ON_A_GPU

    @property
    def high_ns(self) -> int:
        """The most that the overhead may be taken for."""
        return round(max(_DRIFT * self.usual_ns, self.usual_ns + self.spread_ns)) + _CAPTURED_NS * self.captured


def claim_ns(played: SealedRound, *, plain: bool) -> float:
    """What a round claims, per call: the time by events, unless more went on than lay between them.

    If the submission's own code made the calls (`plain`), events on one stream prove nothing: the host's span counts,
    from the first call until the whole device is idle. With graphs the two differ only by a launch and a wake-up; if
    they differ by more, work ran beside the graph, and is charged.
    """
    event_ns, span_ns = played.claimed_ns, played.claimed_span_ns
    return (span_ns if plain or escaped(played) else event_ns) / played.calls


def escaped(played: SealedRound) -> bool:
    """Whether the device was busy for longer than the stream's events say."""
    return outlasts(played.claimed_span_ns, played.claimed_ns)


def outlasts(span_ns: int, event_ns: int) -> bool:
    """Whether a host's span exceeds the same work by events by more than a launch and a wake-up."""
    return span_ns - event_ns > _GAP_NS + _RELATIVE * span_ns


@dataclass(frozen=True)
class Agreement:
    """A case's rounds by both clocks, in ns; all but overheads and noise are per call."""

    plain: bool
    overhead_ns: int
    bounds: Bounds
    noise_ns: int
    sealed_ns: int
    claimed_ns: int
    tolerance_ns: int
    steady: bool
    """Whether the null rounds are no slower than the bounds from before the submission allow."""
    calls: int
    """In each round."""
    highest_claim_ns: float
    unexcused_ns: float
    """The sealed time less the time that the judge itself was held up: by a host, or by threads that still spin."""
    impossible: bool
    """Whether every single round claims less than the clock allows."""

    @classmethod
    def of(cls, rounds: Sequence[SealedRound], null_ns: Sequence[int], bounds: Bounds, *, plain: bool) -> Agreement:
        """Compare the clocks of a case's rounds."""
        measured_ns = round(stats.median(null_ns)) + bounds.gap.usual_ns
        overhead_ns = min(measured_ns, bounds.high_ns)
        # A few null rounds may agree by chance; the noise is at least what it was beforehand.
        noise_ns = min(max(round(stats.spread(null_ns)), bounds.spread_ns), bounds.noise_ns)
        sealed_ns = round(stats.median([max(0, r.wall_ns - overhead_ns) / r.calls for r in rounds]))
        claims = [claim_ns(r, plain=plain) for r in rounds]
        claimed_ns = round(stats.median(claims))
        uncertain_ns = _uncertain_ns(noise_ns, len(rounds), len(null_ns), bounds.gap)
        tolerance_ns = round(uncertain_ns / rounds[0].calls + _RELATIVE * sealed_ns)
        allowed = [(1 - _REJECTED_BELOW) * _unexcused_ns(r, overhead_ns) - tolerance_ns for r in rounds]
        return cls(
            plain=plain,
            overhead_ns=overhead_ns,
            bounds=bounds,
            noise_ns=noise_ns,
            sealed_ns=sealed_ns,
            claimed_ns=claimed_ns,
            tolerance_ns=tolerance_ns,
            steady=measured_ns <= bounds.high_ns,
            calls=rounds[0].calls,
            highest_claim_ns=max(claims),
            unexcused_ns=stats.median([_unexcused_ns(r, overhead_ns) for r in rounds]),
            impossible=all(claim < least for claim, least in zip(claims, allowed, strict=True)),
        )

    @property
    def wide(self) -> bool:
        """Whether the clock is too coarse for this batch to give the claim the benefit of the doubt."""
        return self.tolerance_ns > WIDEST * self.sealed_ns

    @property
    def suspects(self) -> bool:
        """Whether the claims are too low to be explained by noise or slower null rounds; `contradicted` decides."""
        return self.impossible and self.steady and not self.wide

    def credited_ns(self, rounds: Sequence[SealedRound]) -> list[float]:
        """Each round's time per call: the claim, but never below what the judge's clock allows for that round.

        If the clock is too coarse it allows nothing below the wall time less the least overhead, and if the null rounds
        have become slower nothing below the wall time less the usual one: what cannot be checked must not pay.
        """
        overhead_ns, granted_ns = self.overhead_ns, self.tolerance_ns
        if self.wide or not self.steady:
            granted_ns = 0
            overhead_ns = min(overhead_ns, self.bounds.low_ns if self.wide else self.bounds.usual_ns)
        return [max(claim_ns(r, plain=self.plain), (r.wall_ns - overhead_ns) / r.calls - granted_ns) for r in rounds]

    def late_ns(self, rounds: Sequence[SealedRound]) -> list[int]:
        """By how much the clock outlasts each round's claim, where that is more than the tolerance; else 0.

        All 0 if the clock cannot check the claims: it is too coarse, or the null rounds have become slower.
        """
        if self.wide or not self.steady:
            return [0] * len(rounds)
        claims = [claim_ns(r, plain=self.plain) for r in rounds]
        counted = zip(rounds, claims, self.credited_ns(rounds), strict=True)
        return [round(r.wall_ns - self.overhead_ns - c * r.calls) if t > c else 0 for r, c, t in counted]

    def clean_rounds(self, rounds: Sequence[SealedRound]) -> list[int]:
        """The indices of the rounds that determine how precisely the time is known: those in which the clocks agree.

        In a late round either the host was held up, or the claim is false. Either way it counts in the median, by the
        clock, but says nothing about how much the kernel varies. If more than a quarter are late, or too few would be
        left for an interval, all rounds are used.
        """
        agree = [place for place, ns in enumerate(self.late_ns(rounds)) if not ns]
        return agree if len(agree) >= max(_FEWEST, 3 * len(rounds) / 4) else list(range(len(rounds)))


def _unexcused_ns(played: SealedRound, overhead_ns: int) -> float:
    """A round's time per call, less the time that the judge had no CPU to stop its clock with.

    On two cores a thread of the submission that spins after its work can keep the judge waiting for a time slice of 3
    ms. That excuses a low claim, but is not subtracted from the time that counts: a submission could spin on purpose.
    """
    return max(0, played.wall_ns - played.held_up_ns - overhead_ns) / played.calls


def contradicted(first: Agreement, second: Agreement) -> bool:
    """Whether the claims are false, by the time of the extra calls that the larger batch has.

    A host that delays the judge adds as much to a small batch as to a large one, so it cancels in the difference. What
    a false claim leaves out grows with the number of calls.
    """
    small, large = sorted((first, second), key=lambda each: each.calls)
    more = large.calls - small.calls
    if not more:
        return False
    took_ns = large.unexcused_ns * large.calls - small.unexcused_ns * small.calls
    uncertain_ns = large.tolerance_ns * large.calls + small.tolerance_ns * small.calls
    least_ns = ((1 - _REJECTED_BELOW) * took_ns - uncertain_ns) / more
    return max(small.highest_claim_ns, large.highest_claim_ns) < least_ns
