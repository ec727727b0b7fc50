"""Which runs the ledgers have, and how far each ledger went when the server last appended to it.

The recorder and `kernelmark repair-ledger` call it. Trusted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, delete, func, insert, select, update

from harness.verdict import Outcome
from kernelmark.server.database.tables import differing_answers, gradings, heads
from kernelmark.server.record.answers import score_s
from leaderboard.record.chain import Head
from leaderboard.record.entry import Entry
from leaderboard.record.ledger import JsonlLedger

_TOGETHER = 1000  # runs that are searched for at a time


@dataclass(frozen=True)
class LedgerRun:
    """A run as a ledger has it, with the worker's answer if the database still has that."""

    run: str
    document: str
    """The ledger's verdict."""
    answer: str | None
    outcome: Outcome
    score_s: float | None
    device_ns: int

    @classmethod
    def of(cls, entry: Entry, answer: str | None) -> LedgerRun:
        """
        Raises:
            LedgerError: the verdict is of a version that this one cannot read.
        """
        found = entry.verdict
        document = entry.document.decode()
        return cls(found.run, document, answer, found.outcome, score_s(found), found.duration_ns)

    @property
    def differs(self) -> bool:
        """Whether the answer is another verdict than the ledger's."""
        return self.answer not in (None, self.document)


def unrecorded(connection: Connection) -> dict[str, dict[str, str | None]]:
    """The runs that are to be recorded and are not marked as recorded, with their answers, by problem."""
    return _by_problem(connection, gradings.c.mode == "submit", gradings.c.state != "recorded")


def marked(connection: Connection) -> dict[str, dict[str, str | None]]:
    """The runs that are marked as recorded, oldest first, with their verdicts as far as they are kept, by problem."""
    return _by_problem(connection, gradings.c.state == "recorded")


def _by_problem(connection: Connection, *which: ColumnElement[bool]) -> dict[str, dict[str, str | None]]:
    columns, found = gradings.c, dict[str, dict[str, str | None]]()
    query = select(columns.problem, columns.run, columns.answer).where(*which).order_by(columns.cursor)
    for slug, run, answer in connection.execute(query):
        found.setdefault(slug, {})[run] = answer
    return found


def recorded(ledger: JsonlLedger, runs: Mapping[str, str | None]) -> Iterator[LedgerRun]:
    """Find those of some runs that a ledger has.

    Args:
        runs: with their answers in the database.

    Raises:
        LedgerError: while iterating: its chain is broken.
    """
    wanted = list(runs)
    for start in range(0, len(wanted), _TOGETHER):
        with ledger.lines() as lines:
            verdicts = lines.of_runs(wanted[start : start + _TOGETHER])
            for found, entry in zip(verdicts, lines.read(verdicts), strict=True):
                score = None if found.median_ns is None else found.median_ns / 1e9
                document, answer = entry.document.decode(), runs[found.run]
                yield LedgerRun(found.run, document, answer, found.outcome, score, found.duration_ns)


def heads_of(connection: Connection) -> dict[str, Head]:
    """How far each ledger went when it was last appended to, by problem."""
    return {row.problem: Head(row.bytes, row.seq, row.sha256) for row in connection.execute(select(heads))}


def mark(connection: Connection, now_ns: int, found: Iterable[LedgerRun]) -> None:
    """Mark runs as recorded with the ledger's verdicts, and keep the answers that differ from them."""
    columns = gradings.c
    next_cursor = select(func.coalesce(func.max(columns.cursor), 0) + 1).scalar_subquery()
    for run in found:
        if run.differs:
            why = "the ledger has another verdict of this run"
            connection.execute(insert(differing_answers).values(run=run.run, at_ns=now_ns, why=why, answer=run.answer))
        values = {
            "state": "recorded",
            "version": columns.version + 1,
            "answer": run.document,
            "outcome": run.outcome.value,
            "score_s": None if run.score_s is None else repr(run.score_s),
            "device_ns": run.device_ns,
            "charged": columns.job_class != "regrade",
            "error": None,
            "error_class": None,
            "stuck": None,
            "ended_ns": func.coalesce(columns.ended_ns, now_ns),
            "visible_ns": func.coalesce(columns.visible_ns, now_ns),
            "cursor": func.coalesce(columns.cursor, next_cursor),
        }
        connection.execute(update(gradings).where(columns.run == run.run).values(values))


def remember(connection: Connection, slug: str, head: Head | None) -> None:
    """Store how far a ledger goes now; None: it does not exist."""
    connection.execute(delete(heads).where(heads.c.problem == slug))
    if head is not None:
        connection.execute(insert(heads).values(problem=slug, bytes=head.bytes, seq=head.seq, sha256=head.sha256))
