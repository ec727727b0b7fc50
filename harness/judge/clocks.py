"""Holds a launcher's three clocks against each other, and says how long a call counts for. Pure, trusted.

CUPTI's time of a call is the finest, from its first kernel's start to its last one's end. Nothing of the submission's
runs on the launcher's host, but its kernels run in the launcher's context, and might write where CUPTI or an event puts
its time. So each coarser clock bounds the finer one, less what the clocks are apart for a kernel of our own.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness import wire

_EVENT_SLACK_NS = 1_500
_NODE_SLACK_NS, _MOST_NODES = 500, 8  # graphs of 3, 5 and 56 nodes had 0.7, 1.6 and 3.0 µs more on an H100
_SPAN_SLACK_NS = 40_000  # waking up
_RELATIVE = 0.01
_OFTEN = 0.05  # of the calls


def counted_ns(calls: Sequence[wire.Replayed], apart: wire.Loaded, nodes: int) -> list[float]:
    """What each call counts for: CUPTI's time, unless the events or the host's clock allow no time as short."""
    return [_counted(each, apart, nodes) for each in calls]


def contradicted(calls: Sequence[wire.Replayed], apart: wire.Loaded, nodes: int) -> bool:
    """Whether a coarser clock decided more often than chance does."""
    longer = [counted > each.device_ns for each, counted in zip(calls, counted_ns(calls, apart, nodes), strict=True)]
    return sum(longer) > _OFTEN * len(calls)


def _counted(call: wire.Replayed, apart: wire.Loaded, nodes: int) -> float:
    branching_ns = _NODE_SLACK_NS * min(nodes - 1, _MOST_NODES)
    by_events = (1 - _RELATIVE) * call.event_ns - apart.event_extra_ns - _EVENT_SLACK_NS - branching_ns
    around = apart.event_extra_ns + apart.span_extra_ns
    by_host = (1 - _RELATIVE) * call.span_ns - around - _SPAN_SLACK_NS - branching_ns
    return max(call.device_ns, by_events, by_host)
