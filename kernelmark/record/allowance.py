"""The limits a day: refuses a grading to be recorded whose author, or team, has had enough of them.

`grading.recorder` asks it, and a fleet. Trusted. It counts what the record has of the last 24 hours, in all ledgers,
and what was admitted through the same `Allowance` since, or is in flight in the same fleet. Gradings that other
commands have under way are not in the record yet, so each command that begins meanwhile may admit as much as is left:
this spares a machine, and keeps no secret.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import cached_property
from itertools import accumulate

from harness.errors import UsageError
from kernelmark.project.phases import DailyLimits
from kernelmark.project.settings import Settings
from kernelmark.record.records import ledgers, whole
from leaderboard.record.teams import shown
from leaderboard.standings.usage import DAY, Use, uses


class Allowance:
    """What authors may still have graded today; a command admits all its submissions through one.

    It reads the ledgers once, when it is first asked, and only if there are limits.
    """

    def __init__(self, settings: Settings, in_flight: Collection[Use] = ()) -> None:
        self._now = datetime.now(UTC)
        phase = settings.phase(self._now)
        self._limits = phase.limits if phase is not None and phase.limits is not None else settings.limits
        self._settings, self._teams, self._in_flight = settings, settings.teams, in_flight

    def take(self, author: str, usual_s: Callable[[], float | None] = lambda: None) -> Use | None:
        """Count one more grading of an author, and return it, if there are limits; `usual_s` says how long such a one
        takes, in seconds.

        Raises:
            UsageError: a limit is reached; it says from when on it is not.
            LedgerError: a ledger is broken.
        """
        if not self.limited:
            return None
        reached = dict(self._reached(author))
        if reached:
            what = f"has used {' and '.join(reached)} in 24 hours"
            remedy = f"possible again from {_minute(max(reached.values()))}"
            raise UsageError(shown(author, self._teams.of(author)), what, remedy)
        expected_s = (usual_s() or 0.0) if self._limits.device_seconds_a_day else 0.0
        use = Use(author, self._now, round(expected_s * 1e9))
        self._used.setdefault(self._teams.name_of(author), []).append(use)
        return use

    def left(self, author: str) -> str:
        """What is left to an author, or the team, in words; empty if there are no limits.

        Raises:
            LedgerError: a ledger is broken.
        """
        if not self.limited:
            return ""
        gradings, device_seconds = self._limits.gradings_a_day, self._limits.device_seconds_a_day
        used, words = self._of(author), []
        if gradings is not None:
            words.append(f"{max(0, gradings - len(used))} of {gradings} gradings")
        if device_seconds is not None:
            words.append(f"{max(0, device_seconds - round(_seconds(used)))} of {device_seconds} device seconds")
        reached = dict(self._reached(author))
        again = f"; possible again from {_minute(max(reached.values()))}" if reached else ""
        return f"{', '.join(words)}{again}"

    @property
    def limited(self) -> bool:
        """Whether there is a limit at all."""
        return self._limits != DailyLimits()

    def _reached(self, author: str) -> Iterator[tuple[str, datetime]]:
        """The limits that an author has reached, in words, each with the moment from which it is not."""
        gradings, device_seconds = self._limits.gradings_a_day, self._limits.device_seconds_a_day
        used = self._of(author)
        if gradings is not None and len(used) >= gradings:
            yield f"{len(used)} of {gradings} gradings", used[len(used) - gradings].at + DAY
        if device_seconds is not None and (total := _seconds(used)) >= device_seconds:
            gone = accumulate(use.device_ns / 1e9 for use in used)  # once this one and those before it are a day old
            again = next(use.at + DAY for use, old in zip(used, gone, strict=True) if total - old < device_seconds)
            yield f"{total:.0f} of {device_seconds} device seconds", again

    def _of(self, author: str) -> list[Use]:
        return self._used.get(self._teams.name_of(author), [])

    @cached_property
    def _used(self) -> dict[str, list[Use]]:
        """By author or team, oldest first."""
        found = list(self._in_flight)
        for ledger in ledgers(whole(self._settings)):
            if ledger.path.stat().st_mtime > (self._now - DAY).timestamp():  # else all its lines are older
                found += uses(ledger.facts(), self._now)
        by_name: dict[str, list[Use]] = {}
        for use in sorted(found, key=lambda use: use.at):
            by_name.setdefault(self._teams.name_of(use.author), []).append(use)
        return by_name


class InFlight:
    """The gradings of a fleet that are to be recorded and are not yet; any thread may call it."""

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
        """Give back what was reserved at the end of the block, in which it may be recorded: meanwhile it is not counted
        twice, or not at all.
        """
        if use is None:
            yield
            return
        with self._lock:
            try:
                yield
            finally:
                self._uses.remove(use)


def _seconds(used: list[Use]) -> float:
    return sum(use.device_ns for use in used) / 1e9


def _minute(moment: datetime) -> str:
    """The first whole minute that is not before a moment."""
    return f"{moment.astimezone(UTC) + timedelta(seconds=59, microseconds=999_999):%Y-%m-%d %H:%M} UTC"
