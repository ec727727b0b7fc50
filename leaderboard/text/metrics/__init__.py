"""The metrics of a benchmark case, one a file. Terminal, Markdown, site and exports show what is listed here."""

from leaderboard.text.metrics import memory, roofline, traffic, work
from leaderboard.text.metrics.metric import Column, Metric

METRICS: tuple[Metric, ...] = (roofline.METRIC, traffic.METRIC, work.METRIC, memory.METRIC)

__all__ = ["METRICS", "Column", "Metric"]
