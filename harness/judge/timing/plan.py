"""The time stage: the claimed latency of single cold calls, and from it how many calls a sealed batch needs. Trusted.

What the runner says here ranks nothing. It is the distribution that participants know from `do_bench`, and the first
guess at the size of the sealed rounds, which the judge's own clock then confirms or corrects.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from harness import stats, wire
from harness.device import DEVICES, BatchSizes
from harness.judge.correctness.graded_case import GradedCase
from harness.judge.correctness.layout import Layout
from harness.judge.session import Session
from harness.judge.session.time_limit import TimeLimit
from harness.verdict import ClaimedLatency, DeviceKind, Effort

_BATCH_NS = 20_000_000  # a sealed batch should last this long: the judge's clock is accurate to tens of microseconds
_MOST_TENSORS = 1 << 14  # of all sets of a batch
# Of all sets in the host's memory: 20 ms at the 50 GB/s of PCIe 5. It is pinned, and takes 0.27 s to make.
_MOST_HOST_BYTES = 1 << 30
_FIRST_LOOK = 50
_NARROW_LATENCY = 0.01  # half the interval's width at which sampling of single calls stops


@dataclass(frozen=True)
class Plan:
    """How a benchmark case is measured on this kind of device."""

    samples: int
    """Single calls at most; the first look is at 50 of them."""
    sample_budget_ns: int
    blocks_min: int
    """An ABBA block has two rounds of the submission and two of each baseline."""
    blocks_max: int
    blocks_budget_ns: int
    narrow: float
    """Half the width of an interval, as a share of its median, at which no more rounds are needed."""
    batch: BatchSizes

    @property
    def rounds_min(self) -> int:
        return 2 * self.blocks_min


# samples, their budget in ns, fewest and most blocks, their budget in ns, narrow
_EFFORTS: dict[Effort, tuple[int, int, int, int, int, float]] = {
    "screen": (50, 100_000_000, 3, 3, 500_000_000, 0.02),
    "quick": (50, 100_000_000, 3, 3, 500_000_000, 0.02),
    "default": (200, 300_000_000, 3, 24, 2_000_000_000, 0.005),
    "thorough": (800, 1_200_000_000, 6, 96, 8_000_000_000, 0.002),
}


def plan_for(device: DeviceKind, effort: Effort = "default") -> Plan:
    """The default budget is about 2 s per case on a GPU, and half of that on a CPU, where repetition cures no noise."""
    samples, sample_ns, least, most, rounds_ns, narrow = _EFFORTS[effort]
    if DEVICES[device].on_host:
        samples, rounds_ns = min(samples, 50), rounds_ns // 2
    return Plan(samples, sample_ns, least, most, rounds_ns, narrow, DEVICES[device].batch_sizes())


@dataclass(frozen=True)
class ReplayPlan:
    """How many calls of a case a launcher makes. A block has two of the submission and two of each baseline."""

    blocks_min: int
    blocks_max: int
    budget_ns: int
    narrow: float
    """As in `Plan`."""


_REPLAYS: dict[Effort, ReplayPlan] = {
    "screen": ReplayPlan(10, 24, 100_000_000, 0.01),
    "quick": ReplayPlan(10, 24, 100_000_000, 0.01),
    "default": ReplayPlan(10, 150, 300_000_000, 0.005),
    "thorough": ReplayPlan(20, 800, 2_000_000_000, 0.002),
}


def replay_plan_for(effort: Effort) -> ReplayPlan:
    return _REPLAYS[effort]


def claimed_latency(session: Session, case: GradedCase, plan: Plan, limit: TimeLimit) -> ClaimedLatency:
    """Run the event/sync protocol on practice inputs, until the median is known well enough or the budget ends.

    Raises:
        SubmissionFault: the submission failed on them, or the limit is used up.
    """
    batch = case.batch(min(4, most_sets(case.layout, plan.batch.memory_bytes)))
    doing = f"timing {case.name}"
    replies: list[wire.Sampled] = []
    try:
        case.bind(session, batch, limit=limit, doing=doing)
        deadline = time.perf_counter_ns() + plan.sample_budget_ns
        for look in stats.looks(min(_FIRST_LOOK, plan.samples), plan.samples):
            left_ns = max(1, deadline - time.perf_counter_ns())
            have = sum(len(sampled.claimed_ns) for sampled in replies)
            ask = wire.Sample(samples=look - have, budget_ns=left_ns)
            replies.append(session.ask(ask, wire.Sampled, limit=limit, doing=doing))
            estimate = stats.estimate_median([ns for sampled in replies for ns in sampled.claimed_ns])
            narrow = estimate.high - estimate.low <= 2 * _NARROW_LATENCY * estimate.median
            if narrow or time.perf_counter_ns() >= deadline:
                break
        session.ask(wire.Unmap(), wire.Done, limit=limit, doing=doing)
    finally:
        batch.close_arenas()
    claimed = [ns for sampled in replies for ns in sampled.claimed_ns]
    p10, p50, p90 = (round(stats.quantile(claimed, q)) for q in (0.1, 0.5, 0.9))
    return ClaimedLatency(
        claimed_p10_ns=p10,
        claimed_median_ns=p50,
        claimed_p90_ns=p90,
        claimed_samples_ns=tuple(claimed),
        claimed_span_ns=round(stats.median([ns for sampled in replies for ns in sampled.span_ns])),
        hold=replies[-1].hold,
    )


def sets_for(layout: Layout, claimed_ns: int, plan: Plan) -> int:
    """How many input sets a sealed batch gets: 20 ms of calls, twice the L2 in inputs, within the memory budget.

    For the cache's sake a batch becomes no longer than 100 ms: small inputs of a long kernel matter little to it.
    At least two if they fit, so that one call is left out, whose outputs must stay untouched.
    """
    by_time = -(-_BATCH_NS // max(claimed_ns, 1))
    by_cache = min(-(-2 * plan.batch.cache_bytes // layout.read_stride), 5 * by_time)
    return min(max(2, by_time, by_cache), most_sets(layout, plan.batch.memory_bytes))


def most_sets(layout: Layout, memory_bytes: int) -> int:
    """How many input sets a batch can have, at least one: as many as fit into memory, and no more tensors than the
    judge can handle in seconds, since it fills and compares them one by one.
    """
    sets = min(memory_bytes // layout.bytes_per_set, _MOST_TENSORS // len(layout.slots), wire.MAX_SETS)
    if layout.host_stride:
        sets = min(sets, _MOST_HOST_BYTES // layout.host_stride)
    return max(1, sets)
