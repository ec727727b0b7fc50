"""How fast a case did the arithmetic that any kernel for it must do."""

from __future__ import annotations

from leaderboard.text.metrics.rate import rate_metric

METRIC = rate_metric(
    "work",
    "Operations a second that any kernel must do",
    least=lambda case: case.minimum_flops,
    what="flops",
    key="flops_per_s",
    unit="GFLOP/s",
)
