"""Finds reasons to trust a time less, for both ways of timing. Pure, trusted.

A doubt is recorded and shown next to the time. It removes no sample and changes no outcome.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from harness import stats
from harness.verdict import Doubt, DoubtCode, Telemetry

_BUSY = 0.1  # of the available CPU time
_BUSY_NS = 100_000_000  # less may be a rounding error of the kernel


def busy_machine(others: tuple[float, int] | None) -> tuple[Doubt, ...]:
    """The doubt if other programs used the CPU while a case was timed.

    `others`: their share of the available CPU time, and the amount in ns; None if unknown.
    """
    if others is None or others[0] < _BUSY or others[1] < _BUSY_NS:
        return ()
    text = f"other programs used {100 * others[0]:.0f} % of the CPU time while this was timed"
    return (Doubt(code=DoubtCode.BUSY_MACHINE, text=text),)


def doubts_of_series(
    times: Sequence[float], samples: Mapping[str, Sequence[float]], unit: str, readings: Sequence[Telemetry | None]
) -> Iterator[tuple[DoubtCode, str]]:
    """The doubts that follow from times and sensor readings. `unit` says what there is one of each for: round, block.

    `samples` are the times in which two modes are looked for, by their name in the message.
    """
    if moved := stats.drift(times):
        yield DoubtCode.DRIFT, f"the time moved by {100 * moved:+.1f} % of its median from the first {unit} to the last"
    for name, sample in samples.items():
        if modes := stats.two_modes(sample):
            yield DoubtCode.TWO_MODES, f"the times of {name} have two centres, {modes[0]:,.0f} and {modes[1]:,.0f} ns"
    if throttled := [telemetry.throttle for telemetry in readings if telemetry and telemetry.throttle]:
        names = ", ".join(sorted({name for reasons in throttled for name in reasons}))
        clocks = [telemetry.sm_mhz for telemetry in readings if telemetry and telemetry.sm_mhz]
        span = " to ".join(str(mhz) for mhz in sorted({min(clocks), max(clocks)})) if clocks else ""
        ran = f"; the SM clock ran at {span} MHz" if clocks else ""
        yield (
            DoubtCode.THROTTLED,
            f"the device lowered its clocks in {len(throttled)} of {len(readings)} {unit}s ({names}){ran}",
        )
