"""The two clocks of the server, which tests replace."""

from __future__ import annotations

import time
from datetime import UTC, datetime


class Clock:
    """The machine's clocks."""

    def now_ns(self) -> int:
        """Nanoseconds since 1970, UTC; it may be set back."""
        return time.time_ns()

    def monotonic_ns(self) -> int:
        """Nanoseconds since some moment; it never goes back, and begins anew when the machine starts."""
        return time.monotonic_ns()


def moment(time_ns: int) -> datetime:
    """A time of the database as a `datetime`, to the microsecond."""
    return datetime.fromtimestamp(time_ns // 1000 / 1e6, UTC)
