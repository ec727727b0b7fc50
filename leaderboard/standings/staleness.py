"""Whether a result still says what a grading would say today: the one function for the board and for `regrade`.

The ranking marks rows by it. Trusted. A row is stale when its problem, the protocol or the software on its device has
changed; its rank stands, since it was right when it was given, and the mark says what changed.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from harness.verdict import Environment, ProblemId, Record
from leaderboard.record.current import Current
from leaderboard.record.entry import VERDICT, Entry
from leaderboard.standings.excerpt import Ranked, parse_ranking_fields

# What may change under a device that keeps its name. The rest of an environment says which device and sandbox it is.
SOFTWARE = ("driver", "cuda", "torch", "triton", "python", "image_digest", "power_limit_mw")


class Stale(Record):
    """Why a result is out of date, and the run of the same file that took its place, where it was graded again."""

    reason: str
    again: str | None = None


class Present:
    """What a ledger and `Current` together tell of the present: filled with every verdict, then asked for marks."""

    def __init__(self, current: Current) -> None:
        self._current = current
        self._newest: dict[tuple[str, ...], tuple[datetime, Environment]] = {}
        self._again: dict[tuple[str, ...], tuple[datetime, str, Environment]] = {}
        self._now: dict[str, Current] = {}

    def add(self, verdict: Ranked) -> None:
        """Remember what tells later whether a row is stale, and whether its file was graded again since."""
        ran, slug = verdict.environment, verdict.problem.slug
        where, at = (slug, *place(ran)), verdict.created_at
        if (newest := self._newest.get(where)) is None or newest[0] < at:
            self._newest[where] = (at, ran)
        if stale(verdict.problem, verdict.protocol, ran, self._current) is None:
            file = _file(verdict)
            if (again := self._again.get(file)) is None or again[0] < at:
                self._again[file] = (at, verdict.run, ran)

    def mark(self, verdict: Ranked) -> Stale | None:
        """Why a grading is out of date, in a `Present` that is not filled any more."""
        slug = verdict.problem.slug
        if slug not in self._now:
            self._now[slug] = self._of(slug)
        now = self._now[slug]
        reason = stale(verdict.problem, verdict.protocol, verdict.environment, now)
        if reason is None:
            return None
        again = self._again.get(_file(verdict))
        problem = verdict.problem.model_copy(update={"sha256": now.sha256(verdict.problem) or ""})
        if again is None or stale(problem, now.protocol, again[2], now) is not None:
            return Stale(reason=reason)
        return Stale(reason=reason, again=again[1])

    def _of(self, slug: str) -> Current:
        """What a grading of one problem would rest on; what was told of environments goes before what was found."""
        found = tuple(ran for where, (_, ran) in self._newest.items() if where[0] == slug)
        return self._current.model_copy(update={"environments": (*self._current.environments, *found)})


def newest_environment(entries: Iterable[Entry], where: tuple[str, str, str]) -> Environment | None:
    """What was found on a device and in a sandbox (`place`) when something was last graded there."""
    verdicts = (parse_ranking_fields(entry) for entry in entries if entry.kind == VERDICT)
    found = [verdict for verdict in verdicts if place(verdict.environment) == where]
    return max(found, key=lambda verdict: verdict.created_at).environment if found else None


def stale(problem: ProblemId, protocol: int, ran: Environment, current: Current) -> str | None:
    """Why a grading is out of date, in a few words; None while it is not, or where there is nothing to tell it by."""
    now = current.sha256(problem)
    if now is not None and now != problem.sha256:
        return f"the problem changed, {problem.sha256[:12]} is now {now[:12]}"
    if protocol != current.protocol:
        return f"protocol {protocol}, now {current.protocol}"
    here = same_place(ran, current.environments)
    if here is None:
        return None
    return next((_changed(fact, ran, here) for fact in SOFTWARE if getattr(ran, fact) != getattr(here, fact)), None)


def _file(verdict: Ranked) -> tuple[str, ...]:
    """What a grading would be repeated for: this author's file, on this device, in isolation or not."""
    ran, submission = verdict.environment, verdict.submission
    return (verdict.problem.slug, submission.author, submission.sha256, *place(ran)[:2], str(ran.isolated))


def same_place(ran: Environment, environments: Iterable[Environment]) -> Environment | None:
    """The environment of the same device and sandbox, where there is one among them."""
    return next((other for other in environments if place(other) == place(ran)), None)


def place(ran: Environment) -> tuple[str, str, str]:
    """What makes two environments states of one: the device and the sandbox."""
    return ran.device_kind, ran.device_name, ran.sandbox


def _changed(fact: str, ran: Environment, here: Environment) -> str:
    before, now = (_shown(getattr(each, fact)) for each in (ran, here))
    return f"{fact.replace('_', ' ')} {before}, now {now}"


def _shown(value: object) -> str:
    """Digests are cut: their first digits tell them apart, and all of them fill a line."""
    return "unknown" if value is None else str(value).removeprefix("sha256:")[:12]
