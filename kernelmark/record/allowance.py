"""Applies the daily limits: refuses a grading if its author or team has reached one.

`grading.recorder` and a fleet call it. Trusted. It counts the gradings of the last 24 hours in all ledgers, those that
the same `Allowance` has admitted since, and those in flight in the same fleet. Running gradings of other commands are
not recorded yet, so commands that run at the same time may exceed a limit together. That is acceptable: the limits
only save the machine's time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cached_property

from kernelmark.project.phases import DailyLimits
from kernelmark.project.settings import Settings
from kernelmark.record.limits import Spent
from kernelmark.record.records import ledgers, whole
from leaderboard.record.teams import shown
from leaderboard.standings.usage import DAY, Use, uses


class Allowance:
    """What the daily limits leave to each author; a command uses one for all its submissions.

    It reads the ledgers once, when it first needs them, and only if there are limits.
    """

    def __init__(self, settings: Settings, in_flight: Collection[Use] = ()) -> None:
        self._now = datetime.now(UTC)
        phase = settings.phase(self._now)
        limits = phase.limits if phase is not None and phase.limits is not None else settings.limits
        self._limits = limits.model_copy(update={"checks_a_day": None})  # checks are not recorded
        self._settings, self._teams, self._in_flight = settings, settings.teams, in_flight

    def take(self, author: str, usual_s: Callable[[], float | None] = lambda: None) -> Use | None:
        """Count one more grading of an author, and return it; None if there are no limits. `usual_s` returns how long
        such a grading usually takes, in seconds.

        Raises:
            UsageError: a limit is reached; the message says until when.
            LedgerError: a ledger is broken.
        """
        if not self.limited:
            return None
        self._spent(author).refuse_more(shown(author, self._teams.of(author)))
        expected_s = (usual_s() or 0.0) if self._limits.device_seconds_a_day else 0.0
        use = Use(author, self._now, round(expected_s * 1e9))
        self._used.setdefault(self._teams.name_of(author), []).append(use)
        return use

    def left(self, author: str) -> str:
        """What the limits leave to an author or the team, in words; empty if there are no limits.

        Raises:
            LedgerError: a ledger is broken.
        """
        return self._spent(author).left() if self.limited else ""

    @property
    def limited(self) -> bool:
        """Whether there is any limit."""
        return self._limits != DailyLimits()

    def _spent(self, author: str) -> Spent:
        return Spent.of(self._limits, self._used.get(self._teams.name_of(author), []))

    @cached_property
    def _used(self) -> dict[str, list[Use]]:
        """The gradings of the last 24 hours by author or team, oldest first."""
        found = [*self._in_flight, *recorded_uses(self._settings, self._now)]
        by_name: dict[str, list[Use]] = {}
        for use in sorted(found, key=lambda use: use.at):
            by_name.setdefault(self._teams.name_of(use.author), []).append(use)
        return by_name


def recorded_uses(settings: Settings, now: datetime) -> list[Use]:
    """The gradings in the ledgers from the 24 hours before a moment.

    Raises:
        LedgerError: a ledger is broken.
    """
    found = list[Use]()
    for ledger in ledgers(whole(settings)):
        if ledger.path.stat().st_mtime > (now - DAY).timestamp():  # otherwise all its lines are older
            found += uses(ledger.facts(), now)
    return found


class InFlight:
    """The gradings of a fleet that will be recorded and are still running; any thread may call it."""

    def __init__(self) -> None:
        self._lock, self._uses = threading.Lock(), list[Use]()

    def take(self, settings: Settings, author: str, usual_s: Callable[[], float | None]) -> Use | None:
        """Reserve a grading until `ending`; returns and raises as `Allowance.take`."""
        with self._lock:
            if use := Allowance(settings, self._uses).take(author, usual_s):
                self._uses.append(use)
            return use

    @contextmanager
    def ending(self, use: Use | None) -> Iterator[None]:
        """Release a reservation at the end of the block. The grading may be recorded in the block: other threads count
        it exactly once.
        """
        if use is None:
            yield
            return
        with self._lock:
            try:
                yield
            finally:
                self._uses.remove(use)
