"""How much of the daily limits an author has used, what is left, and when more is possible. Trusted; pure.

`allowance` calls it with the gradings in the ledgers, and a server also with those in its queue.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from typing import NamedTuple

from harness.errors import UsageError
from kernelmark.project.phases import DailyLimits
from leaderboard.standings.usage import DAY, Use


class LimitReachedError(UsageError):
    """A daily limit is reached; `again` is when more is possible."""

    def __init__(self, where: str, what: str, again: datetime) -> None:
        self.again = again
        super().__init__(where, what, f"possible again from {_minute(again)}")


class LimitReservedError(UsageError):
    """The rest of a daily limit is reserved by gradings that have not ended, so more may be possible soon."""


class Total(NamedTuple):
    """The sum of several uses: their numbers, and the device time of those that have ended and of the others."""

    gradings: int = 0
    checks: int = 0
    used_ns: int = 0
    reserved_ns: int = 0

    @classmethod
    def of(cls, uses: Sequence[Use]) -> Total:
        checks, used_ns = sum(use.check for use in uses), sum(use.device_ns for use in _ended(uses))
        return cls(len(uses) - checks, checks, used_ns, sum(use.device_ns for use in uses) - used_ns)

    def plus(self, other: Total) -> Total:
        return Total(*map(sum, zip(self, other, strict=True)))


@dataclass(frozen=True)
class Spent:
    """The uses of an author or a team in the last 24 hours, and their limits."""

    limits: DailyLimits
    total: Total
    uses: Callable[[], Sequence[Use]]
    """Reads the uses, oldest first. It is called only if a limit is reached, to find out until when."""

    @classmethod
    def of(cls, limits: DailyLimits, uses: Sequence[Use]) -> Spent:
        return cls(limits, Total.of(uses), lambda: uses)

    def refuse_more(self, who: str, *, check: bool = False) -> None:
        """Check that one more grading, or with `check` one more check, is possible.

        Raises:
            LimitReachedError: a limit is reached.
            LimitReservedError: a limit would be reached if running gradings took as long as expected.
        """
        if reached := dict(self._reached("checks" if check else "gradings")):
            raise LimitReachedError(who, f"has used {' and '.join(reached)} in 24 hours", max(reached.values()))
        if self._is_reserved:
            used = f"{self.total.used_ns / 1e9:.0f} of {self.limits.device_seconds_a_day} device seconds in 24 hours"
            what = f"has used {used}, and {self.total.reserved_ns / 1e9:.0f} are reserved by what is queued"
            raise LimitReservedError(who, what, "submit again when some of it has ended")

    def left(self) -> str:
        """What is left, in words; empty if there are no limits."""
        words = [f"{max(0, most - number) or 'none'} of {most} {name}" for name, most, number in self._counted()]
        if (most := self.limits.device_seconds_a_day) is not None:
            words.append(f"{max(0, most - round(self._device_s)) or 'none'} of {most} device seconds")
        reached, again = dict(self._reached("gradings")), ""
        if reached:
            again = f"; the next grading is possible from {_minute(max(reached.values()))}"
        elif self._is_reserved:
            again = "; what is queued has reserved the rest, and returns what it does not use"
        return f"{', '.join(words)}{again}"

    @property
    def _device_s(self) -> float:
        return (self.total.used_ns + self.total.reserved_ns) / 1e9

    @property
    def _is_reserved(self) -> bool:
        """Whether used and reserved device seconds together reach the limit."""
        most_s = self.limits.device_seconds_a_day
        return most_s is not None and self._device_s >= most_s

    def _counted(self) -> Iterator[tuple[str, int, int]]:
        """The limits on numbers: what is counted, the limit, and the number so far."""
        if (most := self.limits.gradings_a_day) is not None:
            yield "gradings", most, self.total.gradings
        if (most := self.limits.checks_a_day) is not None:
            yield "checks", most, self.total.checks

    def _reached(self, kind: str) -> Iterator[tuple[str, datetime]]:
        """The reached limits in words, each with the time at which more is possible."""
        for name, most, number in self._counted():
            if name == kind and number >= most:
                used = [use for use in self.uses() if use.check == (name == "checks")]
                yield f"{number} of {most} {name}", used[number - most].at + DAY
        most_s, used_ns = self.limits.device_seconds_a_day, self.total.used_ns
        if most_s is not None and used_ns >= most_s * 1e9:
            ended = _ended(self.uses())
            gone = accumulate(use.device_ns for use in ended)  # once this use and those before are a day old
            passed = zip(ended, gone, strict=True)
            yield (
                f"{used_ns / 1e9:.0f} of {most_s} device seconds",
                next(use.at + DAY for use, old in passed if used_ns - old < most_s * 1e9),
            )


def _ended(uses: Iterable[Use]) -> list[Use]:
    return [use for use in uses if not use.reserved]


def _minute(moment: datetime) -> str:
    """A moment rounded up to a whole minute."""
    return f"{moment.astimezone(UTC) + timedelta(seconds=59, microseconds=999_999):%Y-%m-%d %H:%M} UTC"
