"""Measures the usual differences between the three clocks, before any recording is loaded."""

from __future__ import annotations

from statistics import quantiles
from typing import Any, NamedTuple

from cuda.bindings import driver

from harness.arena.mapping import check
from harness.launcher.activity import CuptiActivity
from harness.launcher.calls import cold
from harness.launcher.device import LauncherDevice

_WARM_UPS, _CALLS = 3, 15


class ClockOffsets(NamedTuple):
    """The lower quartiles over calls of our own short kernel, since other users of the device only add to them."""

    event_extra_ns: int
    """The time between the events around a launch, minus CUPTI's time."""
    span_extra_ns: int
    """The host's time minus the time between the events."""


def compare(device: LauncherDevice, activity: CuptiActivity) -> ClockOffsets:
    """Make our own calls, and compare the clocks.

    Raises:
        DeviceError: CUPTI does not report them.
    """
    graph: Any = device.own_graph()
    activity.forget()
    extras = []
    for _ in range(_WARM_UPS + _CALLS):
        times, [span] = cold(device, activity, graph, 1)
        extras.append((times.event_ns - (span.end - span.start), times.span_ns - times.event_ns))
    check(driver.cuGraphExecDestroy(graph))
    events, spans_ns = zip(*extras[_WARM_UPS:], strict=True)
    return ClockOffsets(*(max(0, round(quantiles(extra_ns, n=4)[0])) for extra_ns in (events, spans_ns)))
