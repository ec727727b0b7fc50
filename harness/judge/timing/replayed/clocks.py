"""Compares a launcher's three clocks, and decides which time of a call counts. Pure, trusted.

CUPTI gives the most accurate time, from the start of the first kernel to the end of the last. No code of the submission
runs on the launcher's host, but its kernels run in the launcher's context, and might overwrite the time that CUPTI or
an event stores. So each coarser clock gives a lower bound of the finer time: the coarser time minus the difference that
the two clocks have for a kernel of our own. Events bound each call. The host's clock may be late in any call, so it
bounds the median.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness import stats
from harness.wire import replies

_EVENT_SLACK_NS = 1_500
_NODE_SLACK_NS, _MAX_NODES = 500, 8  # graphs of 3, 5 and 56 nodes took 0.7, 1.6 and 3.0 µs more on an H100
_SPAN_SLACK_NS = 40_000  # for waking the host up
# Upper limits of the differences for a kernel of our own, which are measured while others may use the device.
# On an H100 they were 2.7 to 3.5 µs and 32 to 45 µs, once 160 µs.
_MAX_EVENT_NS, _MAX_SPAN_NS = 8_000, 100_000
_RELATIVE_SLACK = 0.01
_MAX_LONGER = 0.05  # the share of calls that events may lengthen without a doubt


@dataclass(frozen=True)
class Clocks:
    """The times of calls by the clocks, and a doubt if the clocks disagree."""

    counted_ns: list[float]
    """The time of each call that counts."""
    doubt: str = ""

    @classmethod
    def of(cls, calls: Sequence[replies.Replayed], loaded: replies.Loaded, nodes: int) -> Clocks:
        """Compare the clocks of a case's calls, each of which ran `nodes` nodes of a graph."""
        slack_ns = min(loaded.event_extra_ns, _MAX_EVENT_NS) + _EVENT_SLACK_NS
        slack_ns += _NODE_SLACK_NS * min(nodes - 1, _MAX_NODES)
        counted = [max(call.device_ns, (1 - _RELATIVE_SLACK) * call.event_ns - slack_ns) for call in calls]
        device_ns, event_ns, span_ns = (
            stats.median([getattr(call, clock) for call in calls]) for clock in ("device_ns", "event_ns", "span_ns")
        )
        wake_up_ns = min(loaded.span_extra_ns, _MAX_SPAN_NS) + _SPAN_SLACK_NS
        least_ns = (1 - _RELATIVE_SLACK) * span_ns - slack_ns - wake_up_ns
        if (missing_ns := least_ns - stats.median(counted)) > 0:
            doubt = f"the launcher's host waited {span_ns:,.0f} ns for what CUPTI says took {device_ns:,.0f} ns"
            return cls([ns + missing_ns for ns in counted], f"{doubt}: more than CUPTI's time counts")
        longer = sum(ns > call.device_ns for ns, call in zip(counted, calls, strict=True))
        if longer > _MAX_LONGER * len(calls):
            doubt = f"in {longer} of {len(calls)} calls events lasted longer than CUPTI's time allows"
            doubt += f" (medians {event_ns:,.0f} and {device_ns:,.0f} ns): there a longer time counts"
            return cls(counted, doubt)
        return cls(counted)
