"""Reasons to trust a time of sealed rounds less. Pure, trusted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from harness.device import DEVICES
from harness.judge.timing.doubts import doubts_of_series
from harness.judge.timing.sealed.agreement import WIDEST, Agreement, escaped, outlasts
from harness.verdict import ClaimedLatency, DeviceKind, Doubt, DoubtCode, SealedRound


@dataclass(frozen=True)
class Measured:
    """The measurements that a benchmark case's doubts follow from."""

    device: DeviceKind
    latency: ClaimedLatency
    rounds: Sequence[SealedRound]
    agreement: Agreement
    plain_because: str | None
    """Why the calls could not be captured; None if they were."""
    input_bytes: int
    """Of the drawn calls of one round, which should be more than twice the cache."""
    cache_bytes: int


def doubts(measured: Measured) -> tuple[Doubt, ...]:
    """All doubts about the time."""
    reasons = [*_of_the_batch(measured), *_of_the_clocks(measured), *_of_the_samples(measured)]
    return tuple(Doubt(code=code, text=text) for code, text in reasons)


def _of_the_batch(measured: Measured) -> Iterator[tuple[DoubtCode, str]]:
    device = DEVICES[measured.device]
    if device.captures and measured.plain_because is not None:
        yield (
            DoubtCode.PLAIN_CALLS,
            f"calls were not captured ({measured.plain_because}); host time between them counts",
        )
    if not device.on_host and measured.latency.hold == "none":
        yield DoubtCode.SYNCHRONIZES, "a call waits for the device: single calls were timed with their launches"
    if measured.input_bytes < 2 * measured.cache_bytes:
        yield DoubtCode.WARM_CACHE, "the inputs of a batch take up less than twice the L2 cache"


def _of_the_clocks(measured: Measured) -> Iterator[tuple[DoubtCode, str]]:
    agreement = measured.agreement
    if agreement.claimed_ns > agreement.sealed_ns + agreement.tolerance_ns:
        yield DoubtCode.SLOW_CLAIM, "the claim is higher than the judge's clock says"
    if agreement.claimed_ns + agreement.tolerance_ns < agreement.sealed_ns:
        yield DoubtCode.LOW_CLAIM, "the claim is lower than the judge's clock says; the clock counts instead"
    elif late := [ns for ns in agreement.late_ns(measured.rounds) if ns]:
        worst_ms = max(late) / 1e6
        rounds = f"{len(late)} of {len(measured.rounds)} rounds"
        yield (
            DoubtCode.LATE_CLOCK,
            f"in {rounds} the judge's clock went on for up to {worst_ms:.1f} ms longer, and counts there",
        )
    if not agreement.steady:
        text = "rounds without a call became slower once the submission was there; the earlier ones count"
        yield DoubtCode.UNSTEADY, text
    if agreement.wide:
        percent = 100 * agreement.tolerance_ns / max(agreement.sealed_ns, 1)
        batch_ms = agreement.sealed_ns * measured.rounds[0].calls / 1e6
        text = (
            f"in {batch_ms:.2f} ms the clock checked the claim to {percent:.0f} % at best, not to {100 * WIDEST:.0f} %"
        )
        yield DoubtCode.WIDE_TOLERANCE, text + ": the higher of the two counts"
    if measured.plain_because is None and 2 * sum(map(escaped, measured.rounds)) > len(measured.rounds):
        yield DoubtCode.ESCAPED_WORK, "the device was busy for longer than the timed stream: the longer time counts"
    elif measured.latency.hold == "memory" and outlasts(
        measured.latency.claimed_span_ns, measured.latency.claimed_median_ns
    ):
        yield DoubtCode.ESCAPED_WORK, "after a single call the device was busy for longer than the timed stream"


def _of_the_samples(measured: Measured) -> Iterator[tuple[DoubtCode, str]]:
    times = measured.agreement.credited_ns(measured.rounds)
    samples = {"single calls": measured.latency.claimed_samples_ns, "rounds": times}
    yield from doubts_of_series(times, samples, "round", [r.telemetry for r in measured.rounds])
