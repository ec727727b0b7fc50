"""A problem's sheet for participants, apart from its definition: the statement, its entry points in C, and the times of
the organizers' kernels. `kernelmark problems show` prints it. Trusted; torch is not imported.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from harness.errors import LedgerError
from harness.problem import Problem
from harness.stats import geometric_mean
from harness.verdict import Verdict
from kernelmark.project.choice import device_name
from kernelmark.project.problems import entry_points_of, statement_of
from kernelmark.project.settings import Settings
from kernelmark.record.records import ledger
from kernelmark.text.problem import BaselineTime


@dataclass(frozen=True)
class Sheet:
    """The statement in Markdown, empty if there is none; entry points in C by suffix; and times of baselines here."""

    statement: str
    entry_points: Mapping[str, tuple[str, ...]]
    baselines: tuple[BaselineTime, ...]


def sheet(settings: Settings, problem: Problem) -> Sheet:
    """Everything that the project knows; a broken ledger or a missing statement is left out."""
    return Sheet(statement_of(problem), entry_points_of(problem), baselines(settings, problem))


def baselines(settings: Settings, problem: Problem) -> tuple[BaselineTime, ...]:
    """The newest recorded time of each baseline on each of this machine's devices, timed as a rank requires.

    Only gradings of the problem's current version count.
    """
    own = {name for kind in ("cuda", "cpu") if (name := device_name(kind))}
    recorded = ledger(settings, problem.slug)
    found: dict[tuple[str, str], BaselineTime] = {}
    try:
        current = {
            fields.seq
            for fields in recorded.facts().verdicts
            if fields.problem.sha256 == problem.sha256
            and fields.ranks
            and fields.speedups_json != "[]"
            and fields.environment.device_name in own
        }
        for entry in recorded.at(current):
            for timed in _timed(problem, entry.verdict):
                found[timed.device, timed.name] = timed
    except LedgerError:
        return ()
    return tuple(found[key] for key in sorted(found))


def _timed(problem: Problem, verdict: Verdict) -> list[BaselineTime]:
    """The geometric mean of the times of each baseline that was timed in every case, each with the case's weight."""
    weights = {case.name: case.weight for case in problem.benchmarks}
    took: dict[str, list[tuple[int, float]]] = {}
    for case in verdict.benchmarks:
        for baseline in case.baselines:
            took.setdefault(baseline.name, []).append((max(baseline.time_ns, 1), weights.get(case.name, 1.0)))
    device = verdict.environment.device_name
    return [
        BaselineTime(name, device, round(geometric_mean(*zip(*times, strict=True))), verdict.run)
        for name, times in took.items()
        if len(times) == len(verdict.benchmarks)
    ]
