"""What the record says about one run besides its verdict: the events that concern it, and the pooled gradings of its
source. `kernelmark show` prints them. Trusted; pure.
"""

from __future__ import annotations

from harness.verdict import Verdict
from leaderboard.record.fields import Facts
from leaderboard.record.moderation import Moderation
from leaderboard.standings.pooling import Source
from leaderboard.standings.ranking import rankings


def moderation(facts: Facts, verdict: Verdict) -> tuple[Moderation, ...]:
    """The events that concern one run, about itself, its source or its author, oldest first."""
    events = facts.moderation()
    return events.of((verdict.run,), verdict.submission.sha256, verdict.submission.author)


def pooled(facts: Facts, verdict: Verdict) -> Source | None:
    """The pooled gradings of a verdict's source in its table; None if this verdict is not among them."""
    sha256 = verdict.submission.sha256
    same = Facts(facts.events, [fields for fields in facts.verdicts if fields.sha256 == sha256])
    matching = (
        source
        for ranking in rankings(same)
        for source in ranking.sources
        if verdict.run in {grading.run for grading in source.gradings}
    )
    return next(matching, None)
