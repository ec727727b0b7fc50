"""Formats boards, lists of gradings, a result's place on its board, and moderation events, for a terminal.

Trusted code over untrusted text, as in `show`: everything from a participant goes through `visible`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from typing_extensions import TypedDict

from harness.problem.schedule import shown
from harness.verdict import Interval, Outcome, Verdict
from kernelmark.text import times
from kernelmark.text.terminal import INDENT, Line, columns, counted, labelled, visible
from leaderboard.record.moderation import undone
from leaderboard.record.pooling import COMPARABLE, NO_RANK, WIDEST
from leaderboard.standings.ranking import ACROSS_CARDS
from leaderboard.text.units import date, interval, minute, ratio, size

if TYPE_CHECKING:
    from leaderboard.record.moderation import Moderation, RecordedEvent
    from leaderboard.standings.ranking import Row, Table


def standing(result: Verdict, table: Table, *, for_author: bool = False) -> str:
    """The rank (`rank 2 of 7 on NVIDIA H200`), or why there is none, or the better source with which the author or team
    ranks; `for_author` as in `show.verdict`.
    """
    if table.frozen is not None and result.created_at > table.frozen:
        return f"none: {frozen(table.frozen)}"
    aside = next((run for run in table.set_aside if run.run == result.run), None)
    if aside is not None:
        return f"none: it is {aside.state}, and does not rank{_because(aside)}"
    submission = result.submission
    own = [row for row in table.rows if row.belongs_to(submission.author)]  # the best one, then one too wide
    if not own:  # the problem is closed
        return "none: other sources were selected to count"
    if result.no_rank is not None:
        better = f"; run {own[0].run} {_keeps(own[0], table)}" if own[0].state in COMPARABLE else ""
        return f"none: {NO_RANK[result.no_rank]}{better}"
    row = next((row for row in own if (row.author, row.sha256) == (submission.author, submission.sha256)), None)
    if row is None:
        best = own[0]
        faster = result.score is not None and best.score.median_ns <= result.score.median_ns  # else it was selected
        team = f" for {visible(best.team.name)}" if best.team and best.author != submission.author else ""
        better = f"{visible(best.author)}'s {'better ' * faster}run {best.run} ({interval(best.score)}){team}"
        return f"{better} {_keeps(best, table)}"
    if row.rank is None:
        better = f"; run {own[0].run} {_keeps(own[0], table)}" if own[0].rank is not None else ""
        return _too_wide(row, result, for_author=for_author) + better
    return _place(row, table) + (f", by {row.gradings} gradings: {interval(row.score)}" if row.gradings > 1 else "")


def frozen(since: datetime) -> str:
    """A sentence about what a frozen board does not show."""
    return f"the board is frozen, and shows nothing graded after {shown(since)} until the problem closes"


def _because(aside: Row) -> str:
    """The reason in the last event that decided its state, in parentheses."""
    last = next(event for event in reversed(aside.moderation) if event.decides)
    return f" ({last.subject}{visible(last.reason)})"


def _keeps(row: Row, table: Table) -> str:
    return f"does not rank either: {row.no_rank}" if row.rank is None else f"keeps {_place(row, table)}"


def _place(row: Row, table: Table) -> str:
    shared = ", shared" if sum(other.rank == row.rank for other in table.rows) > 1 else ""
    return f"rank {row.rank} of {len(table.ranked)} on {visible(table.key.title)}{shared}"


def _too_wide(row: Row, result: Verdict, *, for_author: bool) -> str:
    """Why a source does not rank, and advice for the person who grades it."""
    pooled = f" of {row.gradings} gradings" if row.gradings > 1 else ""
    why = f"none: {row.no_rank} ({interval(row.score)}{pooled}, more than {WIDEST:g} × from low to high)"
    if result.environment.interpreted:
        why += ", as is common in Triton's interpreter"
        return why if for_author else f"{why}; grade it on a GPU"
    apart = row.gradings > 1 and result.score is not None and _width(row.score) > _width(result.score)
    disagree = "; its gradings disagree, so something else used the machine" if apart else ""
    if for_author:
        return why + disagree
    thorough = "" if result.effort == "thorough" else " or with --thorough"
    return f"{why}{disagree}; grade it again on a quiet machine{thorough}: gradings of one source are pooled"


def _width(score: Interval) -> float:
    return score.high_ns / (score.low_ns or 1)


def board(tables: Sequence[Table], *, memory: bool = False, folded: bool = False) -> Iterator[str]:
    """Every table with its rows. If all rows have the same mode and sandbox, the heading has them.

    `memory` adds a column with the most device memory that a call allocates. With `folded`, a table in which every row
    is stale is shortened to its heading if its problem has a current one.
    """
    current = {table.key.problem for table in tables if not _out_of_date(table)}
    if not tables:
        yield "the board shows no submission yet"
    for number, table in enumerate(tables):
        if number:
            yield ""
        hows = {(", ".join(row.modes), row.sandbox) for row in table.rows}
        yield from _heading(table, f"; {', '.join(*hows)}" if len(hows) == 1 else "")
        if folded and _out_of_date(table) and table.key.problem in current:
            reasons = dict.fromkeys(row.stale.reason for row in table.rows if row.stale)
            why = f"{counted(len(table.rows), 'row')}, stale: {visible('; '.join(reasons))}; --all shows them"
            yield Line(f"{INDENT}{why}", "dim", hang=4)
            continue
        yield from _rows(table, memory=memory, alike=len(hows) == 1)
        yield from (Line(INDENT + line, "dim", hang=4) for line in _notes_on(table))


def _out_of_date(table: Table) -> bool:
    return bool(table.rows) and all(row.stale for row in table.rows)


def _heading(table: Table, how: str) -> Iterator[Line]:
    key = table.key
    device = ", ".join(filter(None, (f"{visible(key.device_name)} ({key.device_kind})", key.variant)))
    title = f"{visible(key.problem)} on {device}, protocol {key.protocol}, problem {key.problem_sha256[:12]}{how}"
    yield Line(title, "bold", hang=2)
    if table.private and table.private.cases:
        yield Line(f"{INDENT}{counted(table.private.cases, 'private case')}", "dim")
    if table.cards > 1:
        apart = f"rows of different ones share a rank unless they are more than {ACROSS_CARDS} apart"
        yield Line(f"{INDENT}timed on {table.cards} devices of this name: {apart}", "dim", hang=2)
    if key.interpreted:
        yield Line(f"{INDENT}Triton's interpreter ran these: their times and ranks say nothing about speed", "dim")
    if table.frozen is not None:
        yield Line(f"{INDENT}{frozen(table.frozen)}", "dim")


def _rows(table: Table, *, memory: bool, alike: bool) -> Iterator[Line]:
    """The rows as columns, with modes and sandboxes unless those are `alike`, and with notes if there are any."""
    baselines, notes = table.baseline_names, [_note(row) for row in table.rows]
    over = [f"× {visible(name)}" for name in baselines] + ["peak memory"] * memory
    more = (*(() if alike else ("mode", "sandbox")), "date (UTC)", "run", *(("note",) if any(notes) else ()))
    rows = []
    for row, note in zip(table.rows, notes, strict=True):
        measured = [ratio(speedup) if (speedup := row.over(name)) else "" for name in baselines]
        if memory:
            measured.append("" if row.peak_bytes is None else size(row.peak_bytes))
        who = (visible(row.who), visible(row.submission))
        when = date(row.created_at)
        how = () if alike else (", ".join(row.modes), row.sandbox)
        rank = "-" if row.rank is None else str(row.rank)
        noted = (note,) if any(notes) else ()
        rows.append((rank, *who, *times.cells(row.score), *measured, *how, when, row.run, *noted))
    yield from columns(rows, head=("rank", "author", "submission", "time", "interval", *over, *more), right={0, 3})


def _note(row: Row) -> str:
    """The note on a row: why it has no rank, how many gradings it pools, and whether it is stale."""
    again = f"stale, graded again as {row.stale.again}" if row.stale and row.stale.again else "stale"
    pooled = f"{row.gradings} gradings" if row.gradings > 1 else ""
    return ", ".join(filter(None, (row.no_rank, pooled, again if row.stale else "")))


def moderation(events: Iterable[Moderation]) -> Iterator[str]:
    """The moderation events about a run: a line for each with its id, and the event that undid it, if any."""
    all_events = list(events)
    gone = undone(all_events)
    for event in all_events:
        of = f" of {event.undoes[:_DIGITS]}" if event.undoes else ""
        by = f"; undone by {gone[event.id].id[:_DIGITS]}" if event.id in gone else ""
        yield labelled(event.action, f"{_said(event)}, event {event.id[:_DIGITS]}{of}{by}")


def _said(event: Moderation) -> str:
    return f"{event.subject}{visible(event.reason)} ({visible(event.actor)}, {minute(event.created_at)})"


def _notes_on(table: Table) -> Iterator[str]:
    """Notes below a table: each reason why rows are stale, once; and the events about rows and runs set aside."""
    stale: dict[str, list[str]] = {}
    for row in table.rows:
        if row.stale is not None:
            stale.setdefault(row.stale.reason, []).append(row.run)
    for reason, runs in stale.items():
        which = "all rows" if len(runs) == len(table.rows) else ", ".join(runs)
        verb = "is" if which == runs[0] else "are"
        yield f"{which} {verb} stale: {visible(reason)}"
    for row in (*table.rows, *table.set_aside):
        state = "" if row.state == "ranks" else f" ({row.state.replace('_', ' ')})"
        for event in row.moderation:
            yield f"{row.run} by {visible(row.author)}{state}: {event.action}: {_said(event)}"


_EVENTS = ("event", "date (UTC)", "problem", "action", "about", "actor", "undone by", "reason")
_DIGITS = 8  # of an event's id that are shown


def moderated(events: Sequence[RecordedEvent]) -> Iterator[str]:
    """The recorded events as columns, for `kernelmark moderate list`."""
    rows = []
    for listed in events:
        event = listed.event
        scope, named = event.about
        about = f"{scope} {named[:16] if event.sha256 else named}"
        if event.undoes:
            about = f"event {event.undoes[:_DIGITS]}"
        when, problems = minute(event.created_at), ", ".join(listed.problems)
        said = (problems, event.action, about, event.actor, listed.undone_by[:_DIGITS], event.reason)
        rows.append((event.id[:_DIGITS], when, *map(visible, said)))
    yield from columns(rows, head=_EVENTS, prose=True)


_HEAD = ("date (UTC)", "run", "problem", "submission", "author", "time or outcome", "board")


class RunSummary(TypedDict):
    """A recorded grading as `kernelmark runs` prints it for programs."""

    run: str
    created_at: str
    problem: str
    author: str
    submission: str
    sha256: str
    outcome: Outcome
    device: str
    score: Interval | None
    standing: str


@dataclass(frozen=True)
class RecordedRun:
    """A recorded grading and its standing: `rank 2 of 7`, or why it has no rank; empty if it is on no board."""

    verdict: Verdict
    standing: str

    def document(self) -> RunSummary:
        """The fields of the list for programs; `kernelmark show RUN --format json` has the whole verdict."""
        verdict = self.verdict
        return {
            "run": verdict.run,
            "created_at": verdict.created_at.isoformat(),
            "problem": verdict.problem.slug,
            "author": verdict.submission.author,
            "submission": verdict.submission.name,
            "sha256": verdict.submission.sha256,
            "outcome": verdict.outcome,
            "device": verdict.environment.device_name,
            "score": verdict.score,
            "standing": self.standing,
        }

    def cells(self) -> tuple[str, ...]:
        """A row of the list."""
        verdict, submission = self.verdict, self.verdict.submission
        return (
            minute(verdict.created_at),
            verdict.run,
            *map(visible, (verdict.problem.slug, submission.name, submission.author)),
            interval(verdict.score) if verdict.score else verdict.outcome.value.replace("_", " "),
            self.standing,
        )


def of_runs(tables: Iterable[Table]) -> dict[str, str]:
    """The standing of each run on these boards: its rank, or why it has none, with limitations such as "stale"."""
    found = dict[str, str]()
    for table in tables:
        interpreted = "Triton interpreter" if table.key.interpreted else ""
        for row in table.rows:
            placed = row.no_rank or f"rank {row.rank} of {len(table.ranked)}"
            found[row.run] = ", ".join(filter(None, (placed, interpreted, "stale" if row.stale else "")))
        found |= {run.run: run.state.replace("_", " ") for run in table.set_aside}
    return found


def runs(found: Sequence[RecordedRun], total: int, author: str | None = None) -> Iterator[str]:
    """A row for each grading with its date, problem, author, time or outcome, and standing."""
    if not found:
        yield "no grading was recorded yet" + (f" of the author {visible(author)}" if author is not None else "")
        return
    newest = f"the newest {len(found)} of {total:,} recorded gradings"
    yield Line(newest if total > len(found) else counted(total, "grading"), "bold")
    yield from columns([run.cells() for run in found], head=_HEAD)
