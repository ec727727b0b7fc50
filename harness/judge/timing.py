"""The time stage: the claimed latency of single cold calls, and from it how many calls a sealed batch needs. Trusted.

What the runner says here ranks nothing. It is the distribution that participants know from `do_bench`, and the first
guess at the size of the sealed rounds, which the judge's own clock then confirms or corrects.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from harness import stats, wire
from harness.judge.batch import Batch
from harness.judge.layout import Layout
from harness.judge.session import Session
from harness.problem import Problem, ResolvedCase
from harness.verdict import ClaimedLatency, DeviceKind

BATCH_NS = 20_000_000  # a sealed batch should last this long: the judge's clock is good to some tens of microseconds


@dataclass(frozen=True)
class Plan:
    """How a benchmark case is measured on this kind of device."""

    samples: int
    sample_budget_ns: int
    rounds_min: int
    rounds_max: int
    rounds_budget_ns: int
    memory_bytes: int
    """For a batch, in both arenas and the snapshot; up to `most_memory_bytes` where it is too short for the clock."""
    most_memory_bytes: int
    cache_bytes: int


def plan_for(device: DeviceKind) -> Plan:
    """The default budget: about 2 s a case."""
    if device == "cpu":
        return Plan(20, 300_000_000, 6, 30, 1_000_000_000, 64 << 20, 64 << 20, 0)
    free, _ = torch.cuda.mem_get_info()
    cache = torch.cuda.get_device_properties(torch.cuda.current_device()).L2_cache_size
    return Plan(50, 300_000_000, 6, 40, 2_000_000_000, min(12 << 30, free // 4), free // 3, cache)


def claimed_latency(
    session: Session, problem: Problem, case: ResolvedCase, device: DeviceKind, plan: Plan
) -> ClaimedLatency:
    """Run the event/sync protocol on practice inputs.

    Raises:
        SubmissionFault: the submission failed on them.
    """
    layout = Layout(case)
    sets = max(1, min(4, plan.memory_bytes // layout.bytes_per_set))
    batch = Batch(layout, device, sets)
    seconds, doing = problem.limits.time_s, f"timing {case.name}"
    try:
        bind = layout.bind(case, problem.parameters, sets, inputs_writable=False)
        session.ask(bind, wire.Done, descriptors=batch.descriptors, seconds=seconds, doing=doing)
        sample = wire.Sample(samples=plan.samples, budget_ns=plan.sample_budget_ns)
        claimed = session.ask(sample, wire.Sampled, seconds=seconds, doing=doing).claimed_ns
    finally:
        batch.close_arenas()
    p10, p50, p90 = (round(stats.quantile(claimed, q)) for q in (0.1, 0.5, 0.9))
    return ClaimedLatency(claimed_p10_ns=p10, claimed_median_ns=p50, claimed_p90_ns=p90, claimed_samples_ns=claimed)


def sets_for(layout: Layout, claimed_ns: int, plan: Plan) -> int:
    """How many input sets a sealed batch gets: 20 ms of calls, twice the L2 in inputs, within the memory budget.

    At least two, so that one call that is not drawn can be found untouched, wherever two sets fit.
    """
    by_time = -(-BATCH_NS // max(claimed_ns, 1))
    by_cache = -(-2 * plan.cache_bytes // layout.input_stride)
    by_memory = max(1, plan.memory_bytes // layout.bytes_per_set)
    return max(1, min(max(2, by_time, by_cache), by_memory, wire.MAX_SETS))
