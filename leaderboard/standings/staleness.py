"""Decides whether a result is out of date, for the board and for `regrade`.

The ranking marks rows with it. Trusted. A row is stale if its problem, the protocol or the software on its device has
changed. It keeps its rank, which was right when it was given; the mark says what changed.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from harness.verdict import Environment, ProblemId, Record
from leaderboard.record.current import Current
from leaderboard.record.fields import VerdictFields

# What can change while a device keeps its name. The rest of an environment identifies the device and the sandbox.
SOFTWARE = ("driver", "cuda", "torch", "triton", "python", "image_digest", "power_limit_mw")


class Stale(Record):
    """Why a result is out of date, and the run that replaced it, if the same file was graded again."""

    reason: str
    again: str | None = None


class Present:
    """The present state according to a ledger and `Current`: `add` every verdict, then ask `mark` for each row."""

    def __init__(self, current: Current) -> None:
        self._current = current
        self._newest: dict[tuple[str, ...], tuple[datetime, Environment]] = {}
        self._again: dict[tuple[str, ...], tuple[datetime, str, Environment, str]] = {}
        self._now: dict[str, Current] = {}
        self._stale: dict[tuple[int, int, int], bool] = {}
        self._private: dict[str, tuple[datetime, str]] = {}
        """The hash of the newest private cases of each problem, for a machine that does not have them."""

    def add(self, verdict: VerdictFields) -> None:
        """Remember the newest environment of the verdict's device, and whether its file was graded again."""
        ran, slug = verdict.environment, verdict.problem.slug
        where, at = (slug, *place(ran)), verdict.created_at
        if (newest := self._newest.get(where)) is None or newest[0] < at:
            self._newest[where] = (at, ran)
        parts = (id(verdict.problem), verdict.protocol, id(ran))  # shared by many verdicts, which outlive this object
        if parts not in self._stale:
            self._stale[parts] = stale(verdict.problem, verdict.protocol, ran, self._current) is not None
        if not self._stale[parts]:
            file, private = _file(verdict), _private(verdict)
            if (again := self._again.get(file)) is None or again[0] < at:
                self._again[file] = (at, verdict.run, ran, private)
            if private and ((known := self._private.get(slug)) is None or known[0] < at):
                self._private[slug] = (at, private)

    def mark(self, verdict: VerdictFields) -> Stale | None:
        """Why a grading is out of date; None if it is not. Call it only after every verdict was added."""
        slug = verdict.problem.slug
        if slug not in self._now:
            self._now[slug] = self._of(slug)
        now = self._now[slug]
        reason = stale(verdict.problem, verdict.protocol, verdict.environment, now)
        if reason is None:
            reason = self._other_private(slug, verdict.created_at, _private(verdict))
        if reason is None:
            return None
        again = self._again.get(_file(verdict))
        problem = verdict.problem.model_copy(update={"sha256": now.sha256(verdict.problem) or ""})
        if again is None or self._other_private(slug, again[0], again[3]) is not None:
            return Stale(reason=reason)
        if stale(problem, now.protocol, again[2], now) is not None:
            return Stale(reason=reason)
        return Stale(reason=reason, again=again[1])

    def _other_private(self, slug: str, at: datetime, private: str) -> str | None:
        """Why a grading with these private cases is out of date; None if it is not, as far as the ledger can tell.

        One without any, but newer, is of a machine that does not have them, and is told apart by its table.
        """
        since, newest = self._private.get(slug, (at, ""))
        if private == newest or (not private and at >= since):
            return None
        return f"the private cases changed, {private[:12] or 'none'} is now {newest[:12]}"

    def _of(self, slug: str) -> Current:
        """The current state for one problem; environments in `Current` take precedence over those in the ledger."""
        recorded = tuple(ran for where, (_, ran) in self._newest.items() if where[0] == slug)
        return self._current.model_copy(update={"environments": (*self._current.environments, *recorded)})


def newest_environment(verdicts: Iterable[VerdictFields], where: tuple[str, str, str]) -> Environment | None:
    """The environment of the newest grading on a device and in a sandbox (`place`); None if there is none."""
    there = [verdict for verdict in verdicts if place(verdict.environment) == where]
    return max(there, key=lambda verdict: verdict.created_at).environment if there else None


def stale(problem: ProblemId, protocol: int, ran: Environment, current: Current) -> str | None:
    """Why a grading is out of date, in a few words; None if it is not, as far as `current` can tell."""
    now = current.sha256(problem)
    if now is not None and now != problem.sha256:
        return f"the problem changed, {problem.sha256[:12]} is now {now[:12]}"
    if protocol != current.protocol:
        return f"protocol {protocol}, now {current.protocol}"
    here = same_place(ran, current.environments)
    if here is None:
        return None
    return next((_changed(fact, ran, here) for fact in SOFTWARE if getattr(ran, fact) != getattr(here, fact)), None)


def _private(verdict: VerdictFields) -> str:
    """The hash of its private cases; empty if it had none."""
    return verdict.problem.private.sha256 if verdict.problem.private is not None else ""


def _file(verdict: VerdictFields) -> tuple[str, ...]:
    """What a repeated grading must have in common: the author's file, the device, and whether it is isolated."""
    ran, submission = verdict.environment, verdict.submission
    return (verdict.problem.slug, submission.author, submission.sha256, *place(ran)[:2], str(ran.isolated))


def same_place(ran: Environment, environments: Iterable[Environment]) -> Environment | None:
    """The first environment with the same device and sandbox; None if there is none."""
    return next((other for other in environments if place(other) == place(ran)), None)


def place(ran: Environment) -> tuple[str, str, str]:
    """What identifies an environment while its software changes: the device and the sandbox."""
    return ran.device_kind, ran.device_name, ran.sandbox


def _changed(fact: str, ran: Environment, here: Environment) -> str:
    before, now = (_shown(getattr(each, fact)) for each in (ran, here))
    return f"{fact.replace('_', ' ')} {before}, now {now}"


def _shown(value: object) -> str:
    """A value as text; digests are cut to their first digits, since a whole one fills a line."""
    return "unknown" if value is None else str(value).removeprefix("sha256:")[:12]
