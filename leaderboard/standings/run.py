"""What the record says about one run besides its verdict: the events that concern it, and the pooled gradings of its
source. `kernelmark show` prints them. Trusted; pure.
"""

from __future__ import annotations

from collections.abc import Iterable

from harness.verdict import Verdict
from leaderboard.record.entry import MODERATION, VERDICT, Entry
from leaderboard.record.moderation import Events, Moderation
from leaderboard.standings.excerpt import parse_ranking_fields
from leaderboard.standings.pooling import Source
from leaderboard.standings.ranking import rankings


def moderation(entries: Iterable[Entry], run: str) -> tuple[Moderation, ...]:
    """The events that concern one run, about itself, its source or its author, oldest first."""
    needle, events = f'"run":"{run}"'.encode(), Events()
    about = ("", "")
    for entry in entries:
        if entry.kind == MODERATION:
            events.add(entry.seq, entry.moderation)
        elif entry.kind == VERDICT and needle in entry.document and (verdict := parse_ranking_fields(entry)).run == run:
            about = (verdict.submission.sha256, verdict.submission.author)
    return events.of((run,), *about)


def pooled(entries: Iterable[Entry], verdict: Verdict) -> Source | None:
    """The pooled gradings of a verdict's source in its table; None if this verdict is not among them."""
    needle = verdict.submission.sha256.encode()
    same = [entry for entry in entries if entry.kind == MODERATION or needle in entry.document]
    matching = (
        source
        for each in rankings(same)
        for source in each.sources
        if verdict.run in {grading.run for grading in source.gradings}
    )
    return next(matching, None)
