"""What each page says, as data: the JSON beside it, and what its template is given.

Times are nanoseconds; a sibling `.html` shows the same to people. The schemas are published under `schema/`. Trusted;
names, messages and sources in these are hostile text.
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from harness.roofline import Calibration
from harness.verdict import Interval, PrivateId, Ratio, Record, SandboxName, Sha256, Speedup, Timing, Verdict
from leaderboard.publishing.site.digest import Failure, Step
from leaderboard.publishing.site.statement import Statement
from leaderboard.record.moderation import Moderation
from leaderboard.standings.ranking import SetAside, TableKey
from leaderboard.standings.staleness import Stale


class Standing(Record):
    """A row of a board, or a baseline, which has no rank, run or interval of its own.

    `score` is what `gradings` of the source come to together; a row whose `state` is "too_wide" has no rank.
    """

    rank: int | None
    author: str
    submission: str
    language: str
    run: str | None
    sha256: Sha256 | None
    score: Interval
    speedups: tuple[Speedup, ...] = ()
    share: float | None = None
    modes: tuple[str, ...] = ()
    sandbox: SandboxName | None = None
    created_at: datetime | None = None
    gradings: int = 1
    state: Literal["ranks", "too_wide"] = "ranks"
    moderation: tuple[Moderation, ...] = ()
    stale: Stale | None = None


class BoardDocument(Record):
    """One table: `key` says what its rows have in common; `current` is false of an older problem or protocol."""

    key: TableKey
    current: bool
    rows: tuple[Standing, ...]
    baselines: tuple[Standing, ...] = ()
    records: tuple[Step, ...] = ()
    set_aside: tuple[SetAside, ...] = ()
    private: PrivateId | None = None


class Summary(Record):
    """A problem on the front page, with the first rows of its current boards."""

    slug: str
    title: str
    verdicts: int
    accepted: int
    authors: int
    leaders: tuple[tuple[TableKey, Standing], ...] = ()


class Device(Record):
    """A device of the boards, what was ranked on it, and what it can do at most, where that was measured."""

    name: str
    kind: Literal["cpu", "cuda"]
    boards: int
    rows: int
    problems: tuple[str, ...]
    calibration: Calibration | None = None


class Holder(Record):
    """A record that stood, or still stands, and what it improved upon."""

    problem: str
    device_name: str
    how_timed: str = ""
    """What tells its board from another of the device, as on that board."""
    step: Step
    before_ns: int | None = None


class FrontDocument(Record):
    """The front page."""

    kind: Literal["front"] = "front"
    problems: tuple[Summary, ...]
    devices: tuple[Device, ...]
    records: tuple[Holder, ...]
    activity: dict[str, tuple[int, int]]
    """By date (UTC): verdicts, and how many of them were accepted."""


class ProblemDocument(Record):
    """A problem with its boards."""

    kind: Literal["problem"] = "problem"
    statement: Statement
    boards: tuple[BoardDocument, ...]


class RunDocument(Record):
    """A run: its verdict, less what quotes a source that may not be shown.

    Of those on a board is told what they stand for (`pooled`, the time of `gradings` of the source), and whether that
    is `too_wide` to rank, or `stale`.
    """

    kind: Literal["run"] = "run"
    verdict: Verdict
    source: str | None = None
    hidden: str = ""
    command: str
    gradings: int = 1
    pooled: Interval | None = None
    too_wide: bool = False
    stale: Stale | None = None


class Side(Record):
    """One of the two rows of a comparison: `score` is what the gradings of the source come to, `run` the newest."""

    run: str
    author: str
    submission: str
    language: str
    score: Interval
    gradings: int = 1


class Compared(Record):
    """One case of both runs. `faster` is the second's time over the first's; `paired` the same by a baseline that both
    alternated with, which a warm chip moves less."""

    case: str
    one: Interval
    other: Interval
    faster: Ratio | None
    paired: Ratio | None = None
    baseline: str | None = None


class ComparisonDocument(Record):
    """Two runs of one board, case by case, with the difference of their sources where those may be shown."""

    kind: Literal["comparison"] = "comparison"
    problem: str
    key: TableKey
    one: Side
    other: Side
    cases: tuple[Compared, ...]
    diff: tuple[str, ...] | None = None
    hidden: str = ""


class Place(Record):
    """Where an author stands on one board."""

    problem: str
    key: TableKey
    of: int
    row: Standing


class Attempts(Record):
    """What an author did on one problem."""

    problem: str
    outcomes: dict[str, int]
    latest: datetime
    failures: tuple[Failure, ...]


class AuthorDocument(Record):
    """An author: standings, and the newest failed runs with their reports."""

    kind: Literal["author"] = "author"
    author: str
    places: tuple[Place, ...]
    attempts: tuple[Attempts, ...]


class Activity(Record):
    """An author in the list of all."""

    author: str
    problems: int
    boards: int
    verdicts: int
    accepted: int
    latest: datetime


class AuthorsDocument(Record):
    """Everybody who ever submitted, by name."""

    kind: Literal["authors"] = "authors"
    authors: tuple[Activity, ...]


class DevicesDocument(Record):
    """Every device."""

    kind: Literal["devices"] = "devices"
    devices: tuple[Device, ...]


class MethodDocument(Record):
    """How times are taken, with the protocols and timings of the boards.

    `accuracy` is the measured table, as Markdown, by the name of its device.
    """

    kind: Literal["method"] = "method"
    protocols: tuple[int, ...]
    timings: tuple[Timing, ...]
    accuracy: dict[str, str]
