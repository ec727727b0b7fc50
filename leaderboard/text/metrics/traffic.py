"""How fast a case moved the bytes that any kernel for it must move."""

from __future__ import annotations

from leaderboard.text.metrics.rate import rate_metric

METRIC = rate_metric(
    "traffic",
    "Bytes a second that any kernel must move",
    least=lambda case: case.minimum_bytes,
    what="bytes",
    key="bytes_per_s",
    unit="GB/s",
)
