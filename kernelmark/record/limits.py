"""What somebody has used of the limits a day, what is left, and from when on more is possible. Trusted; pure.

`allowance` asks it with what the ledgers have, and a server with its gradings as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import accumulate

from harness.errors import UsageError
from kernelmark.project.phases import DailyLimits
from leaderboard.standings.usage import DAY, Use


class LimitReachedError(UsageError):
    """A limit a day is reached; `again` is from when on it is not."""

    def __init__(self, where: str, what: str, again: datetime) -> None:
        self.again = again
        super().__init__(where, what, f"possible again from {_minute(again)}")


class LimitReservedError(UsageError):
    """What is left of a limit a day is reserved by gradings that have not ended: more may be possible soon."""


@dataclass(frozen=True)
class Spent:
    """The uses of an author or a team in the last 24 hours, oldest first, and the limits for them."""

    limits: DailyLimits
    used: Sequence[Use]

    def refuse_more(self, who: str, *, check: bool = False) -> None:
        """Check that one more grading is possible; `check`: one that only tests.

        Raises:
            LimitReachedError: a limit is reached.
            LimitReservedError: it would be if what has not ended took as long as is expected.
        """
        if reached := dict(self._reached(check=check)):
            raise LimitReachedError(who, f"has used {' and '.join(reached)} in 24 hours", max(reached.values()))
        if (reserved_s := self._short_of_s()) is not None:
            used = f"{self._used_s:.0f} of {self.limits.device_seconds_a_day} device seconds in 24 hours"
            what = f"has used {used}, and {reserved_s:.0f} are reserved by what is queued"
            raise LimitReservedError(who, what, "submit again when some of it has ended")

    def left(self) -> str:
        """What is left, in words; empty if there are no limits."""
        words = [f"{max(0, most - len(used))} of {most} {name}" for name, most, used in self._counted()]
        if (most := self.limits.device_seconds_a_day) is not None:
            words.append(f"{max(0, most - round(_seconds(self.used)))} of {most} device seconds")
        reached, again = dict(self._reached()), ""
        if reached:
            again = f"; possible again from {_minute(max(reached.values()))}"
        elif self._short_of_s() is not None:
            again = "; the rest is reserved by what is queued"
        return f"{', '.join(words)}{again}"

    @property
    def _used_s(self) -> float:
        """The device seconds of what has ended."""
        return _seconds([use for use in self.used if not use.reserved])

    def _short_of_s(self) -> float | None:
        """The device seconds that are reserved; None if enough are left besides."""
        most_s, total = self.limits.device_seconds_a_day, _seconds(self.used)
        return None if most_s is None or total < most_s else total - self._used_s

    def _counted(self) -> Iterator[tuple[str, int, list[Use]]]:
        """The limits of numbers: what is counted, how many are possible, and those that were."""
        if (most := self.limits.gradings_a_day) is not None:
            yield "gradings", most, [use for use in self.used if not use.check]
        if (most := self.limits.checks_a_day) is not None:
            yield "checks", most, [use for use in self.used if use.check]

    def _reached(self, *, check: bool = False) -> Iterator[tuple[str, datetime]]:
        """The limits that are reached, in words, each with the moment from which it is not."""
        for name, most, used in self._counted():
            if name == ("checks" if check else "gradings") and len(used) >= most:
                yield f"{len(used)} of {most} {name}", used[len(used) - most].at + DAY
        most_s = self.limits.device_seconds_a_day
        if most_s is not None and (total := self._used_s) >= most_s:
            ended = [use for use in self.used if not use.reserved]
            gone = accumulate(use.device_ns / 1e9 for use in ended)  # once this one and those before are a day old
            passed = zip(ended, gone, strict=True)
            yield (
                f"{total:.0f} of {most_s} device seconds",
                next(use.at + DAY for use, old in passed if total - old < most_s),
            )


def _seconds(used: Sequence[Use]) -> float:
    return sum(use.device_ns for use in used) / 1e9


def _minute(moment: datetime) -> str:
    """The first whole minute that is not before a moment."""
    return f"{moment.astimezone(UTC) + timedelta(seconds=59, microseconds=999_999):%Y-%m-%d %H:%M} UTC"
