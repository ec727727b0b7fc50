"""Where a grading stands, for whoever watches it."""

from __future__ import annotations

from dataclasses import dataclass

from harness.verdict import Stage


@dataclass(frozen=True)
class Progress:
    """Where a grading stands: item `done` of `total` of a stage is about to begin."""

    stage: Stage
    done: int
    total: int
    label: str
