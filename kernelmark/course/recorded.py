"""Recorded verdicts as the results of a command: for `grade --resume` and `marks`. Trusted."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from harness.problem.schedule import Delay
from harness.wire.protocol import PROTOCOL
from kernelmark.course.mark import Mark
from kernelmark.course.points import Marking
from kernelmark.course.report import GradingResult
from kernelmark.project.settings import Settings
from kernelmark.record.records import current, ledger
from leaderboard.record.ledger import JsonlLedger
from leaderboard.standings.gradings import RecordedGrading, gradings
from leaderboard.standings.ranking import Table, rank

if TYPE_CHECKING:
    from kernelmark.grading.setup import PreparedJob

# The remarks of `recorder.admit` on submissions that were graded after the deadline.
_HANDED_IN = re.compile(
    r"(?:(?P<days>\d+) days? late(?:, factor (?P<factor>[\d.e-]+))?: handed in|.* handed in on time,)"
    r" (?P<moment>\d{4}-\d\d-\d\d \d\d:\d\d) UTC(?P<offset>[+-]\d\d:\d\d)?.*"
)


class _GradedProblem(NamedTuple):
    """A problem's ledger, with its gradings, oldest first, and its tables."""

    ledger: JsonlLedger
    gradings: list[RecordedGrading]
    tables: list[Table]


class RecordedVerdicts:
    """The verdicts in the ledgers. Each ledger is read once, when it is first needed.

    Raises:
        LedgerError: a ledger is broken.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings, self._teams = settings, settings.teams
        self._read = dict[str, _GradedProblem]()

    def same(self, path: str, job: PreparedJob) -> GradingResult | None:
        """The newest verdict on this source of its author, for the current version of the problem; None without one."""
        recorded, wanted = self._record(job.problem.slug), (job.submission.author, job.submission.sha256)
        for grading in reversed(recorded.gradings):
            setting = grading.verdict.setting
            is_current = (setting.problem.sha256, setting.protocol) == (job.problem.sha256, PROTOCOL)
            if is_current and (grading.author, grading.sha256) == wanted:
                return _result(recorded, grading, path)
        return None

    def marks(self, slug: str, marking: Marking | None = None) -> list[Mark]:
        """A mark for each author with a grading of a problem, and for each member of such an author's team.

        It is that of the author's first row on the board, or else of the newest grading. Gradings of earlier versions
        of the problem count only if there are no others.
        """
        recorded, by_name, marks = self._record(slug), dict[str, list[RecordedGrading]](), []
        for grading in recorded.gradings:
            by_name.setdefault(self._teams.name_of(grading.author), []).append(grading)
        for _, found in sorted(by_name.items()):
            chosen = _chosen(recorded, [grading for grading in found if grading.stale is None] or found)
            result, delay = _result(recorded, chosen, chosen.submission), _delay(chosen, found)
            team = self._teams.of(chosen.author)
            for author in team.members if team is not None else (chosen.author,):
                name, file = team.name if team else "", f"{author}.txt"
                marks.append(Mark(author, "", "", name, delay, result, file, marking=marking))
        return marks

    def _record(self, slug: str) -> _GradedProblem:
        if slug not in self._read:
            recorded, now = ledger(self._settings, slug), current(self._settings)
            with recorded.lines() as lines:
                graded = sorted(gradings(lines, now), key=lambda grading: grading.verdict.created_at)
                self._read[slug] = _GradedProblem(recorded, graded, rank(lines, now, self._teams))
        return self._read[slug]


def _result(recorded: _GradedProblem, grading: RecordedGrading, path: str) -> GradingResult:
    verdict = next(iter(recorded.ledger.at({grading.seq}))).verdict
    key = grading.verdict.setting.key
    table = next((table for table in recorded.tables if table.key == key), None) if verdict.score else None
    return GradingResult(path, verdict.outcome.exit_code, verdict.message, verdict, table, recorded=True)


def _chosen(recorded: _GradedProblem, gradings: Sequence[RecordedGrading]) -> RecordedGrading:
    by_run = {grading.run: grading for grading in gradings}
    rows = [row.run for table in recorded.tables for row in table.rows if row.rank is not None]
    rows += [row.run for table in recorded.tables for row in table.rows if row.rank is None]
    rows += [run.run for table in recorded.tables for run in table.set_aside]
    return next((by_run[run] for run in rows if run in by_run), gradings[-1])


def _delay(grading: RecordedGrading, gradings: Sequence[RecordedGrading]) -> Delay:
    """How late it was, by its remark, or that of an earlier grading of its source that may rank: `regrade` does not
    repeat them. Without a remark it was on time, at the first grading of its source.
    """
    same = [earlier for earlier in gradings if earlier.sha256 == grading.sha256]
    before = [earlier for earlier in same[: same.index(grading)] if earlier.state == "ranks"]
    for event in (event for graded in (grading, *reversed(before)) for event in reversed(graded.moderation)):
        if found := _HANDED_IN.fullmatch(event.reason):
            moment = datetime.fromisoformat(found["moment"] + (found["offset"] or "+00:00"))
            factor = float(found["factor"]) if found["factor"] else None if found["days"] else 1.0
            return Delay(moment, int(found["days"] or 0), factor)
    return Delay(same[0].verdict.created_at, 0, 1.0)
