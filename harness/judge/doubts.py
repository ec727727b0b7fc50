"""Reasons to trust a time less, found in what was measured. Pure, trusted.

A doubt is recorded and shown beside the number. No sample is deleted for it, and no outcome follows from it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from harness import stats
from harness.judge.agreement import WIDEST, Agreement, escaped, outlasts
from harness.judge.clocks import Clocks
from harness.verdict import ClaimedLatency, DeviceKind, Doubt, SealedRound, Telemetry

_BUSY = 0.1  # of the CPU time that there was
_BUSY_NS = 100_000_000  # what is less may be the kernel's rounding


@dataclass(frozen=True)
class Measured:
    """What a benchmark case's doubts are drawn from."""

    device: DeviceKind
    latency: ClaimedLatency
    rounds: Sequence[SealedRound]
    agreement: Agreement
    plain_because: str | None
    """Why the calls could not be captured; None where they were."""
    input_bytes: int
    """Of the drawn calls of one round, which should be more than twice the cache."""
    cache_bytes: int


def doubts(measured: Measured) -> tuple[Doubt, ...]:
    """Everything that should be said beside the time."""
    found = [*_of_the_batch(measured), *_of_the_clocks(measured), *_of_the_samples(measured)]
    return tuple(Doubt(code=code, text=text) for code, text in found)


def busy_machine(others: tuple[float, int] | None) -> tuple[Doubt, ...]:
    """What to say of a CPU that others used while a case was timed: their share of its time, and how much in ns."""
    if others is None or others[0] < _BUSY or others[1] < _BUSY_NS:
        return ()
    text = f"other programs used {100 * others[0]:.0f} % of the CPU time while this was timed"
    return (Doubt(code="busy_machine", text=text),)


def _of_the_batch(measured: Measured) -> Iterator[tuple[str, str]]:
    cuda = measured.device == "cuda"
    if cuda and measured.plain_because is not None:
        yield "plain_calls", f"calls were not captured ({measured.plain_because}); host time between them counts"
    if cuda and measured.latency.hold == "none":
        yield "synchronizes", "a call waits for the device: single calls were timed with their launches"
    if measured.input_bytes < 2 * measured.cache_bytes:
        yield "warm_cache", "the inputs of a batch fit into twice the L2 cache"


def _of_the_clocks(measured: Measured) -> Iterator[tuple[str, str]]:
    agreement = measured.agreement
    if agreement.claimed_ns > agreement.sealed_ns + agreement.tolerance_ns:
        yield "slow_claim", "the claim is higher than the judge's clock"
    if agreement.claimed_ns + agreement.tolerance_ns < agreement.sealed_ns:
        yield "low_claim", "the claim is lower than the judge's clock, which counts instead"
    elif late := [ns for ns in agreement.late_ns(measured.rounds) if ns]:
        worst_ms = max(late) / 1e6
        rounds = f"{len(late)} of {len(measured.rounds)} rounds"
        yield (
            "late_clock",
            f"in {rounds} the judge's clock went on for up to {worst_ms:.1f} ms longer, and counts there",
        )
    if not agreement.steady:
        text = "rounds without a call became slower once the submission was there; the earlier ones count"
        yield "unsteady", text
    if agreement.wide:
        percent = 100 * agreement.tolerance_ns / max(agreement.sealed_ns, 1)
        batch_ms = agreement.sealed_ns * measured.rounds[0].calls / 1e6
        text = (
            f"in {batch_ms:.2f} ms the clock could hold the claim to {percent:.0f} % only, not to {100 * WIDEST:.0f} %"
        )
        yield "wide_tolerance", text + ": the higher of the two counts"
    if measured.plain_because is None and 2 * sum(map(escaped, measured.rounds)) > len(measured.rounds):
        yield "escaped_work", "the device was busy for longer than the timed stream: the longer time counts"
    elif measured.latency.hold == "memory" and outlasts(
        measured.latency.claimed_span_ns, measured.latency.claimed_median_ns
    ):
        yield "escaped_work", "after a single call the device was busy for longer than the timed stream"


def _of_the_samples(measured: Measured) -> Iterator[tuple[str, str]]:
    times = measured.agreement.believed(measured.rounds)
    samples = {"single calls": measured.latency.claimed_samples_ns, "rounds": times}
    yield from _of_a_series(times, samples, "round", [r.telemetry for r in measured.rounds])


def _of_a_series(
    times: Sequence[float], samples: Mapping[str, Sequence[float]], what: str, read: Sequence[Telemetry | None]
) -> Iterator[tuple[str, str]]:
    """What a series of times and the sensors beside it give away."""
    if moved := stats.drift(times):
        yield "drift", f"the time moved by {100 * moved:+.1f} % from the first {what} to the last"
    for name, sample in samples.items():
        if modes := stats.two_modes(sample):
            yield "two_modes", f"the times of {name} have two centres, {modes[0]:,.0f} and {modes[1]:,.0f} ns"
    if reasons := [each.throttle for each in read if each and each.throttle]:
        names = ", ".join(sorted({name for each in reasons for name in each}))
        clocks = [each.sm_mhz for each in read if each and each.sm_mhz]
        span = " to ".join(str(mhz) for mhz in sorted({min(clocks), max(clocks)})) if clocks else ""
        ran = f"; the SM clock ran at {span} MHz" if clocks else ""
        yield "throttled", f"the device lowered its clocks in {len(reasons)} of {len(read)} {what}s ({names}){ran}"


def doubts_of_replays(times: Sequence[float], clocks: Clocks, read: Sequence[Telemetry | None]) -> tuple[Doubt, ...]:
    """What should be said beside the time of replayed calls; `read` is of the sensors, after each block of calls."""
    found = [("clocks_disagree", clocks.doubt)] if clocks.doubt else []
    found += _of_a_series(times, {"calls": times}, "block", read)
    return tuple(Doubt(code=code, text=text) for code, text in found)
