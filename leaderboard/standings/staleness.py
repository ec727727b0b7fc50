"""Decides whether a result is out of date, for the board and for `regrade`.

The ranking marks rows with it. Trusted. A row is stale if its problem, the protocol or the software on its device has
changed. It keeps its rank, which was right when it was given; the mark says what changed.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

from harness.verdict import Environment, FrozenModel, ProblemId
from leaderboard.record.current import Current
from leaderboard.record.fields import LastSeen, Setting, VerdictFields
from leaderboard.record.lines import Lines
from leaderboard.record.pooling import SOFTWARE


class Stale(FrozenModel):
    """Why a result is out of date, and the run that replaced it, if the same file was graded again."""

    reason: str
    again: str | None = None


class Present:
    """The current state by a ledger and `Current`; `mark` says whether one of its verdicts is out of date."""

    def __init__(self, current: Current, ledger: Lines) -> None:
        self._current, self._ledger = current, ledger
        self._newest = sorted(ledger.last_seen(), key=lambda seen: seen.at, reverse=True)
        self._now: dict[str, Current] = {}
        self._reasons: dict[int, str | None] = {}

    def mark(self, verdict: VerdictFields) -> Stale | None:
        """Why a grading is out of date; None if it is not."""
        reason = self._reason(verdict)
        if reason is None:
            return None
        again = self._again.get(_file(verdict))
        return Stale(reason=reason, again=again.run if again is not None and self._reason(again) is None else None)

    def _reason(self, verdict: VerdictFields) -> str | None:
        setting = verdict.setting
        if id(setting) not in self._reasons:
            now = self._of(setting.problem.slug)
            self._reasons[id(setting)] = stale(setting.problem, setting.protocol, setting.environment, now)
        return self._reasons[id(setting)] or self._other_private(verdict)

    @cached_property
    def _again(self) -> dict[tuple[str, ...], VerdictFields]:
        """The newest grading of every file on every device that is not out of date by itself."""
        newest = dict[tuple[str, ...], VerdictFields]()
        current = [seen.setting for seen in self._newest if self._by_itself(seen.setting) is None]
        for verdict in self._ledger.newest_of_files(current):
            known = newest.get(_file(verdict))
            if known is None or known.created_at < verdict.created_at:
                newest[_file(verdict)] = verdict
        return newest

    def _by_itself(self, setting: Setting) -> str | None:
        """Why a grading in this setting is out of date, whatever the ledger says; None if it is not."""
        return stale(setting.problem, setting.protocol, setting.environment, self._current)

    def _other_private(self, verdict: VerdictFields) -> str | None:
        """Why a grading with these private cases is out of date; None if it is not, as far as the ledger can tell.

        One without any, but newer, is of a machine that does not have them, and has another table.
        """
        newest, private = self._private.get(verdict.problem.slug), _private(verdict.setting)
        if newest is None or private == _private(newest.setting):
            return None
        if not private and verdict.created_at >= newest.at:
            return None
        return f"the private cases changed, {private[:12] or 'none'} is now {_private(newest.setting)[:12]}"

    @cached_property
    def _private(self) -> dict[str, LastSeen]:
        """The newest current setting of each problem with private cases, for a machine that does not have those."""
        return {
            seen.setting.problem.slug: seen
            for seen in reversed(self._newest)
            if seen.setting.problem.private is not None and self._by_itself(seen.setting) is None
        }

    def _of(self, slug: str) -> Current:
        """The current state for one problem; environments in `Current` take precedence over those in the ledger."""
        if slug not in self._now:
            recorded = [seen.setting.environment for seen in self._newest if seen.setting.problem.slug == slug]
            environments = (*self._current.environments, *recorded)
            self._now[slug] = self._current.model_copy(update={"environments": environments})
        return self._now[slug]


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


def _private(setting: Setting) -> str:
    """The hash of its private cases; empty if it had none."""
    return setting.problem.private.sha256 if setting.problem.private is not None else ""


def _file(verdict: VerdictFields) -> tuple[str, ...]:
    """The key that repeated gradings have in common: the author's file, the device, and whether it is isolated."""
    ran = verdict.environment
    return (verdict.problem.slug, verdict.author, verdict.sha256, *place(ran)[:2], str(ran.isolated))


def same_place(ran: Environment, environments: Iterable[Environment]) -> Environment | None:
    """The first environment with the same device and sandbox; None if there is none."""
    return next((other for other in environments if place(other) == place(ran)), None)


def place(ran: Environment) -> tuple[str, str, str]:
    """The key that identifies an environment while its software changes: the device and the sandbox."""
    return ran.device_kind, ran.device_name, ran.sandbox


def _changed(fact: str, ran: Environment, here: Environment) -> str:
    before, now = (_shown(getattr(environment, fact)) for environment in (ran, here))
    return f"{fact.replace('_', ' ')} {before}, now {now}"


def _shown(value: object) -> str:
    """A value as text; digests are cut to their first digits, since a whole one fills a line."""
    return "unknown" if value is None else str(value).removeprefix("sha256:")[:12]
