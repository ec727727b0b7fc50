"""Appends moderation events to the record and publishes the board, and lists events: `kernelmark moderate`. Trusted."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from pydantic import ValidationError

from harness.errors import UsageError
from harness.verdict import SubmissionId
from kernelmark.project.settings import Settings
from kernelmark.record.publishing import publish
from kernelmark.record.records import find_run, ledgers, tables, whole
from kernelmark.text.terminal import say, warn
from leaderboard.record.ledger import JsonlLedger
from leaderboard.record.moderation import Action, Moderation, RecordedEvent, Scope, standing, undone

_ALREADY = {"disqualify": "disqualified", "reinstate": "reinstated", "annotate": "annotated so"}


def moderate(
    settings: Settings, prefixes: Sequence[str], action: Action, actor: str, reason: str, scope: Scope = "run"
) -> list[Moderation]:
    """Append a moderation event for each of these runs to the ledgers that hold them, and publish the board.

    With the scope "source" it covers every run of the run's source in this ledger. With "author" it covers every run of
    the run's author, and is appended to every ledger of the project. It is not appended to a ledger in which it is
    already in force. If it is in force in all of them, the earlier event is returned, and a note says so.

    Raises:
        UsageError: no run or several runs begin with these digits, or the actor or the reason is empty or too long;
            nothing was appended.
        HarnessError: as for `record` and `publish`.
    """
    all_settings, made = whole(settings), list[tuple[Moderation, SubmissionId, list[JsonlLedger]]]()
    for prefix in dict.fromkeys(prefixes):
        ledger, entry = find_run(all_settings, prefix)
        submission = entry.verdict.submission
        event = _event(
            run=entry.verdict.run,
            action=action,
            scope=scope,
            sha256=submission.sha256 if scope == "source" else None,
            author=submission.author if scope == "author" else None,
            actor=actor,
            reason=reason,
        )
        made.append((event, submission, ledgers(all_settings) if scope == "author" else [ledger]))
    result, changed = list[Moderation](), list[str]()
    for event, submission, holding in made:
        in_force = [(ledger, _in_force(ledger, event, submission)) for ledger in holding]
        new = [ledger for ledger, earlier in in_force if earlier is None]
        for ledger in new:
            _append(ledger, event)
        changed += [ledger.path.stem for ledger in new]
        earlier = next((earlier for _, earlier in in_force if earlier is not None), None)
        if earlier is not None and not new:
            why = f"by event {earlier.id} of {earlier.actor} ({earlier.subject}{earlier.reason})"
            say(f"kernelmark: note: {event.run} is {_ALREADY[action]} already, {why}; nothing was recorded")
        result.append(event if new or earlier is None else earlier)
    for slug in dict.fromkeys(changed):
        publish(settings, slug)
    return result


def undo(settings: Settings, prefix: str, actor: str, reason: str) -> Moderation:
    """Undo the event whose id begins with `prefix`: append an event to each ledger that has it, and publish the boards.

    A call that was killed in between has undone it in some of the ledgers. The next call appends the same event to the
    others, and a note says so.

    Raises:
        UsageError: no event or several have such an id, it is the remark on a late run, or as for `moderate`.
        HarnessError: as for `moderate`.
    """
    named = f"event {prefix!r}"
    found = [listed for listed in events(settings) if prefix and listed.event.id.startswith(prefix)]
    if not found:
        raise UsageError(named, "was never recorded here", "`kernelmark moderate list` lists all events")
    if len(found) > 1:
        raise UsageError(named, f"could be {', '.join(listed.event.id for listed in found[:4])}", "give more digits")
    [known] = found
    event = known.event
    if event.action == "late":
        raise UsageError(named, "says how late a run was", "let it rank with `kernelmark moderate reinstate`")
    about = {name: getattr(event, name) for name in ("run", "scope", "sha256", "author")}
    made = _event(**about, action="undo", undoes=event.id, actor=actor, reason=reason)
    holding = [ledger for ledger in ledgers(whole(settings)) if ledger.path.stem in known.problems]
    by_ledger = [(ledger, undone(ledger.facts().moderation().every).get(event.id)) for ledger in holding]
    left = [ledger for ledger, by in by_ledger if by is None]
    if earlier := next((by for _, by in by_ledger if by is not None), None):
        others = ", ".join(ledger.path.stem for ledger in left)
        in_part = f"was undone only in part, by event {earlier.id}; this undoes it in {others}, too"
        entire = f"is undone already, by event {earlier.id}; nothing was recorded"
        say(f"kernelmark: note: event {event.id} {in_part if left else entire}")
        # Where the earlier event is itself undone, a new one is needed.
        if not any(earlier in ledger.facts().moderation().every for ledger in left):
            made = earlier
    for ledger in left:
        _append(ledger, made)
    for slug in known.problems:
        publish(settings, slug)
    return made


def events(settings: Settings, problem: str | None = None) -> list[RecordedEvent]:
    """All events on one problem or on all, in the order of the ledgers. An event in several ledgers is listed once, and
    as undone if it is undone in all of them.

    Raises:
        UsageError, LedgerError: as for `ledgers`, or one was written by a version that this one cannot read.
    """
    found: dict[str, RecordedEvent] = {}
    for ledger in ledgers(whole(settings), problem):
        every = ledger.facts().moderation().every
        gone = undone(every)
        for event in every:
            before = found.get(event.id)
            by = gone[event.id].id if event.id in gone and (before is None or before.undone_by) else ""
            problems = (*(before.problems if before else ()), ledger.path.stem)
            found[event.id] = RecordedEvent(event=event, id=event.id, problems=problems, undone_by=by)
    return list(found.values())


def audience(settings: Settings, event: Moderation) -> str:
    """The people who see an event, in words."""
    shown = any(event in row.moderation for table in tables(whole(settings)) for row in (*table.rows, *table.set_aside))
    everywhere = "everyone: on the board, on the site, and by `kernelmark show`"
    return everywhere if shown else "only those who use `kernelmark show`; no row of the board is about it"


def _event(**fields: Any) -> Moderation:
    try:
        return Moderation(**fields, created_at=datetime.now(UTC))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise UsageError(f"--{first['loc'][0]}", f"is not valid: {first['msg']}") from error


def _append(ledger: JsonlLedger, event: Moderation) -> None:
    for warning in ledger.moderate(event).warnings:
        warn(warning)


def _in_force(ledger: JsonlLedger, event: Moderation, submission: SubmissionId) -> Moderation | None:
    """An equal event in a ledger that is still in force; None if there is none."""
    known = ledger.facts().moderation()
    if event.action == "annotate":
        notes = (other for other in standing(known.every) if other.action == "annotate" and other.about == event.about)
        return next((note for note in notes if note.reason == event.reason), None)
    # An event about any run of the source or author may have overridden an event about all of them.
    about_run = known.of((event.run,), submission.sha256, submission.author)
    standing_events = standing(about_run if event.scope == "run" else known.every)
    last = next((other for other in reversed(standing_events) if other.decides), None)
    return last if last is not None and (last.action, last.about) == (event.action, event.about) else None
