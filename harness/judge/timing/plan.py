"""Says how long a benchmark case is measured, by effort. Pure, trusted."""

from __future__ import annotations

from dataclasses import dataclass, replace

from harness.device import DEVICES
from harness.verdict import DeviceKind, Effort


@dataclass(frozen=True)
class TimingPlan:
    """How many blocks of a case are measured.

    A block has two rounds (or replayed calls) of the submission and two of each baseline.
    """

    blocks_min: int
    blocks_max: int
    blocks_budget_ns: int
    narrow: float
    """The half-width of an interval, as a share of its median, at which no more blocks are needed."""
    values_once: bool = False
    """Whether a case is tried on the values of tests only once; otherwise as often as that takes little time."""


_ROUNDS: dict[Effort, TimingPlan] = {
    "screen": TimingPlan(3, 3, 500_000_000, 0.02, values_once=True),
    "quick": TimingPlan(3, 3, 500_000_000, 0.02, values_once=True),
    "default": TimingPlan(3, 24, 2_000_000_000, 0.005),
    "thorough": TimingPlan(6, 96, 8_000_000_000, 0.002),
}
_REPLAYS: dict[Effort, TimingPlan] = {
    "screen": TimingPlan(10, 24, 100_000_000, 0.01, values_once=True),
    "quick": TimingPlan(10, 24, 100_000_000, 0.01, values_once=True),
    "default": TimingPlan(10, 150, 300_000_000, 0.005),
    "thorough": TimingPlan(20, 800, 2_000_000_000, 0.002),
}


def plan_for(device: DeviceKind, effort: Effort = "default") -> TimingPlan:
    """The plan for rounds of plain calls. A CPU gets half the time, since repetition does not reduce its noise."""
    plan = _ROUNDS[effort]
    if not DEVICES[device].on_host:
        return plan
    return replace(plan, blocks_budget_ns=plan.blocks_budget_ns // 2)


def replay_plan_for(effort: Effort) -> TimingPlan:
    """The plan for replayed calls."""
    return _REPLAYS[effort]
