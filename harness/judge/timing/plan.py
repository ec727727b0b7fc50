"""How long a benchmark case is measured, by effort. Pure, trusted."""

from __future__ import annotations

from dataclasses import dataclass, replace

from harness.device import DEVICES
from harness.verdict import DeviceKind, Effort


@dataclass(frozen=True)
class Plan:
    """How many blocks of a case are measured. A block has two rounds, or replayed calls, of the submission and two of
    each baseline.
    """

    blocks_min: int
    blocks_max: int
    blocks_budget_ns: int
    narrow: float
    """Half the width of an interval, as a share of its median, at which no more are needed."""
    values_once: bool = False
    """Whether a case is tried on other values only once, and not again while that costs little."""


_ROUNDS: dict[Effort, Plan] = {
    "screen": Plan(3, 3, 500_000_000, 0.02, values_once=True),
    "quick": Plan(3, 3, 500_000_000, 0.02, values_once=True),
    "default": Plan(3, 24, 2_000_000_000, 0.005),
    "thorough": Plan(6, 96, 8_000_000_000, 0.002),
}
_REPLAYS: dict[Effort, Plan] = {
    "screen": Plan(10, 24, 100_000_000, 0.01, values_once=True),
    "quick": Plan(10, 24, 100_000_000, 0.01, values_once=True),
    "default": Plan(10, 150, 300_000_000, 0.005),
    "thorough": Plan(20, 800, 2_000_000_000, 0.002),
}


def plan_for(device: DeviceKind, effort: Effort = "default") -> Plan:
    """The plan for rounds of plain calls. A CPU gets half the time, since repetition cures no noise there."""
    plan = _ROUNDS[effort]
    if not DEVICES[device].on_host:
        return plan
    return replace(plan, blocks_budget_ns=plan.blocks_budget_ns // 2)


def replay_plan_for(effort: Effort) -> Plan:
    """The plan for replayed calls."""
    return _REPLAYS[effort]
