"""How far the three clocks lie apart where all of them are right: measured before any recording is here."""

from __future__ import annotations

from statistics import quantiles
from typing import Any, NamedTuple

from cuda.bindings import driver

from harness.arena.mapping import check
from harness.launcher.activity import Activity
from harness.launcher.calls import cold
from harness.launcher.device import Device

_WARM_UPS, _CALLS = 3, 15


class Apart(NamedTuple):
    """Of calls of a short kernel of our own, what three of four exceed: others who use the device only add to it."""

    event_extra_ns: int
    """By how much the events around a launch outlast CUPTI's time of it."""
    span_extra_ns: int
    """By how much the host's clock outlasts the events."""


def compare(device: Device, activity: Activity) -> Apart:
    """Make calls of our own, and compare the clocks.

    Raises:
        DeviceError: CUPTI does not see them.
    """
    graph: Any = device.own_graph()
    activity.forget()
    extras = []
    for _ in range(_WARM_UPS + _CALLS):
        times, [span] = cold(device, activity, graph, 1)
        extras.append((times.event_ns - (span.end - span.start), times.span_ns - times.event_ns))
    check(driver.cuGraphExecDestroy(graph))
    events, spans_ns = zip(*extras[_WARM_UPS:], strict=True)
    return Apart(*(max(0, round(quantiles(each, n=4)[0])) for each in (events, spans_ns)))
