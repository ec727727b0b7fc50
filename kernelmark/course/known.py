"""Verdicts that the ledger has already, as the results of a command: for `grade --resume` and `marks`. Trusted."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from harness.problem.schedule import Delay
from harness.wire.protocol import PROTOCOL
from kernelmark.course.marked import Marked
from kernelmark.course.points import Marking
from kernelmark.course.report import GradingResult
from kernelmark.project.settings import Settings
from kernelmark.record.records import current, ledger
from leaderboard.record.ledger import JsonlLedger
from leaderboard.standings.gradings import RecordedGrading, gradings
from leaderboard.standings.ranking import Table, rank

if TYPE_CHECKING:
    from kernelmark.grading.setup import PreparedJob

# What `recorder.admit` remarks of a submission that was graded after the deadline.
_HANDED_IN = re.compile(
    r"(?:(?P<days>\d+) days? late(?:, factor (?P<factor>[\d.]+))?: handed in|.* handed in on time,)"
    r" (?P<moment>\d{4}-\d\d-\d\d \d\d:\d\d) UTC(?P<offset>[+-]\d\d:\d\d)?.*"
)


class _Recorded(NamedTuple):
    """A problem's ledger, with its gradings, oldest first, and its tables."""

    ledger: JsonlLedger
    gradings: list[RecordedGrading]
    tables: list[Table]


class KnownVerdicts:
    """What the ledgers hold, each read once, when it is first asked for.

    Raises:
        LedgerError: a ledger is broken.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings, self._teams = settings, settings.teams
        self._read = dict[str, _Recorded]()

    def same(self, path: str, job: PreparedJob) -> GradingResult | None:
        """The newest verdict of this source by its author on this problem as it is now; None if there is none."""
        recorded, source = self._of(job.problem.slug), (job.submission.author, job.submission.sha256)
        alike = (grading for grading in reversed(recorded.gradings) if (grading.author, grading.sha256) == source)
        settings = ((grading, grading.verdict.setting) for grading in alike)
        wanted = (job.problem.sha256, PROTOCOL)
        found = next((grading for grading, of in settings if (of.problem.sha256, of.protocol) == wanted), None)
        return _graded(recorded, found, path) if found is not None else None

    def marks(self, slug: str, marking: Marking | None = None) -> list[Marked]:
        """A mark for each author who has a grading of a problem, and for each member of such an author's team: by what
        the board shows first of them, or else by the newest grading; by earlier versions of the problem only if there
        is nothing else.
        """
        recorded, together, marks = self._of(slug), dict[str, list[RecordedGrading]](), []
        for grading in recorded.gradings:
            together.setdefault(self._teams.name_of(grading.author), []).append(grading)
        for _, of in sorted(together.items()):
            chosen = _chosen(recorded, [grading for grading in of if grading.stale is None] or of)
            graded, delay = _graded(recorded, chosen, chosen.submission), _delay(chosen, of)
            team = self._teams.of(chosen.author)
            for author in team.members if team is not None else (chosen.author,):
                mark = Marked(author, "", "", team.name if team else "", delay, graded, f"{author}.txt")
                marks.append(mark._replace(marking=marking))
        return marks

    def _of(self, slug: str) -> _Recorded:
        if slug not in self._read:
            recorded, now = ledger(self._settings, slug), current(self._settings)
            facts = recorded.facts()
            graded = sorted(gradings(facts, now), key=lambda grading: grading.verdict.created_at)
            self._read[slug] = _Recorded(recorded, graded, rank(facts, now, self._teams))
        return self._read[slug]


def _graded(recorded: _Recorded, grading: RecordedGrading, path: str) -> GradingResult:
    """A grading as the result of a command."""
    verdict = next(iter(recorded.ledger.at({grading.seq}))).verdict
    key = grading.verdict.setting.key
    table = next((table for table in recorded.tables if table.key == key), None) if verdict.score else None
    return GradingResult(path, verdict.outcome.exit_code, verdict.message, verdict, table, recorded=True)


def _chosen(recorded: _Recorded, of: Sequence[RecordedGrading]) -> RecordedGrading:
    by_run = {grading.run: grading for grading in of}
    rows = [row.run for table in recorded.tables for row in table.rows if row.rank is not None]
    rows += [row.run for table in recorded.tables for row in table.rows if row.rank is None]
    rows += [run.run for table in recorded.tables for run in table.set_aside]
    return next((by_run[run] for run in rows if run in by_run), of[-1])


def _delay(grading: RecordedGrading, of: Sequence[RecordedGrading]) -> Delay:
    """How late it was, as a remark says of it; without one it was on time, when its source was first graded."""
    for event in reversed(grading.moderation):
        if found := _HANDED_IN.fullmatch(event.reason):
            moment = datetime.fromisoformat(found["moment"] + (found["offset"] or "+00:00"))
            factor = float(found["factor"]) if found["factor"] else None if found["days"] else 1.0
            return Delay(moment, int(found["days"] or 0), factor)
    first = next(earlier for earlier in of if earlier.sha256 == grading.sha256)
    return Delay(first.verdict.created_at, 0, 1.0)
