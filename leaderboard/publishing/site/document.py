"""The content of each page as data: it is passed to the page's template, and published as JSON next to the page.

Times are in nanoseconds. The schemas are published under `schema/`. Trusted; names, messages and sources in these
documents are hostile text.
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import Field

from harness.verdict import (
    Interval,
    LaunchedKernel,
    PrivateId,
    Ratio,
    Record,
    SandboxName,
    Sha256,
    Speedup,
    Timing,
    Verdict,
)
from harness.verdict.roofline import Calibration
from leaderboard.publishing.site.digest import Failure, Step
from leaderboard.publishing.site.statement import Statement
from leaderboard.record.moderation import Moderation
from leaderboard.record.profile import StoredProfile
from leaderboard.record.teams import Team
from leaderboard.standings.pooling import COMPARABLE, RowState
from leaderboard.standings.ranking import SetAside, TableKey
from leaderboard.standings.staleness import Stale


class Standing(Record):
    """A row of a board, or a baseline, which has no rank, run or interval of its own.

    `score` is pooled over `gradings` of the source; a row whose `state` is not "ranks" has no rank.
    """

    rank: int | None
    author: str
    team: Team | None = None
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
    state: RowState = "ranks"
    moderation: tuple[Moderation, ...] = ()
    stale: Stale | None = None


class BoardDocument(Record):
    """One table: `key` is what its rows have in common; `current` is false for an older problem version or protocol."""

    key: TableKey
    current: bool
    rows: tuple[Standing, ...]
    baselines: tuple[Standing, ...] = ()
    records: tuple[Step, ...] = ()
    set_aside: tuple[SetAside, ...] = ()
    private: PrivateId | None = None

    @property
    def comparable(self) -> tuple[Standing, ...]:
        """As `Table.comparable`."""
        return tuple(row for row in self.rows if row.state in COMPARABLE)


class Leader(Record):
    """The first row of a board, which may have no rank, and the board's records; `current` as in `BoardDocument`."""

    key: TableKey
    current: bool
    row: Standing
    records: tuple[Step, ...] = ()


class Summary(Record):
    """A problem on the front page, with the first rows of its current boards; if those are empty, of the newest older
    board that is not.

    Boards of Triton's interpreter are left out; `interpreted` says that there is no other current one.
    """

    slug: str
    title: str
    tags: tuple[str, ...] = ()
    verdicts: int
    accepted: int
    authors: int
    deadline: datetime | None = None
    closed: bool = False
    """Whether nothing is accepted any more."""
    leaders: tuple[Leader, ...] = ()
    interpreted: bool = False


class Overall(Record):
    """An author's geometric mean of shares of the roofline over the problems with a ranked row on a current board.

    Boards of Triton's interpreter do not count. For a team, `author` is its name.
    """

    author: str
    share: float
    problems: int


class Device(Record):
    """A device with boards: what was ranked on it, and its calibration, if it has one."""

    name: str
    kind: Literal["cpu", "cuda"]
    boards: int
    rows: int
    problems: tuple[str, ...]
    calibration: Calibration | None = None


class Holder(Record):
    """A past or current record, and the time that it improved upon."""

    problem: str
    device_name: str
    how_timed: str = ""
    """As in the title of its board."""
    step: Step
    before_ns: int | None = None


class FrontDocument(Record):
    """The front page."""

    kind: Literal["front"] = "front"
    problems: tuple[Summary, ...]
    overall: tuple[Overall, ...] = ()
    devices: tuple[Device, ...]
    records: tuple[Holder, ...]
    activity: dict[str, tuple[int, int]]
    """By date (UTC): the number of verdicts, and how many of them were accepted."""


class ProblemDocument(Record):
    """A problem with its boards."""

    kind: Literal["problem"] = "problem"
    statement: Statement
    boards: tuple[BoardDocument, ...]


class RunDocument(Record):
    """A run: its verdict, without the parts that quote a source that may not be shown.

    A run that represents a row of a board also has that row's pooled time (`pooled`, over `gradings` of the source),
    and says whether the row is `stale`. `state` is the row's, or whether the run was timed as a rank requires.
    """

    kind: Literal["run"] = "run"
    verdict: Verdict
    source: str | None = None
    beside: dict[str, str] | None = Field(default=None, description="the files beside the source, by name")
    baseline_sources: dict[str, str] | None = Field(default=None, description="of the organizers' kernels, by baseline")
    hidden: str = ""
    command: str
    gradings: int = 1
    pooled: Interval | None = None
    state: RowState = "ranks"
    stale: Stale | None = None
    instead: str | None = None
    """The run that counts on the board instead of this one."""
    graded_again: bool = False
    """Whether that one is a newer grading of the same source."""


class ProfileDocument(Record):
    """The profile that is kept with a run: the submission's own word."""

    kind: Literal["profile"] = "profile"
    problem: str
    author: str
    submission: str
    profile: StoredProfile


class Side(Record):
    """One of the two rows of a comparison: `score` is pooled over the gradings of the source, `run` is the newest."""

    run: str
    author: str
    team: Team | None = None
    submission: str
    language: str
    score: Interval
    gradings: int = 1


class CaseKernels(Record):
    """What a call of one case launches in both runs, the longest kernels first."""

    case: str
    one: tuple[LaunchedKernel, ...] = ()
    other: tuple[LaunchedKernel, ...] = ()


class Compared(Record):
    """One case of both runs. `faster` is the second's time over the first's; `paired` is the same ratio through a
    baseline that both alternated with, which a warm chip affects less."""

    case: str
    one: Interval
    other: Interval
    faster: Ratio | None
    paired: Ratio | None = None
    baseline: str | None = None


class ComparisonDocument(Record):
    """Two runs of one board, case by case, with the diff of their sources if those may be shown."""

    kind: Literal["comparison"] = "comparison"
    problem: str
    key: TableKey
    one: Side
    other: Side
    faster: Ratio | None = None
    """The second's pooled time over the first's."""
    paired: Ratio | None = None
    """The same ratio over all cases through a baseline that both alternated with, whose name is in `baseline`."""
    baseline: str | None = None
    cases: tuple[Compared, ...]
    kernels: tuple[CaseKernels, ...] = ()
    diff: tuple[str, ...] | None = None
    hidden: str = ""


class Place(Record):
    """An author's or a team's place on one board; `current` as in `BoardDocument`."""

    problem: str
    key: TableKey
    of: int
    row: Standing
    current: bool = True


class AcceptedRun(Record):
    """An accepted run, and where it stands on its board; `current` as in `BoardDocument`, `state` as in `RunDocument`.

    What `counts` there is the run itself, a newer grading of its source, or another source of the author or the team:
    `row` is the run that does, and `rank` and `of` are its rank and the number of ranks.
    """

    problem: str
    key: TableKey
    run: str
    author: str
    submission: str
    score: Interval
    created_at: datetime
    counts: Literal["itself", "newer_grading", "other_source"]
    row: str
    rank: int | None = None
    state: RowState = "ranks"
    of: int
    current: bool


class Attempts(Record):
    """An author's results on one problem."""

    problem: str
    outcomes: dict[str, int]
    latest: datetime
    failures: tuple[Failure, ...]


class AuthorDocument(Record):
    """An author or a team: standings, accepted runs that have a page, and the newest failed ones with their reports.

    `team` is the one that it is about, or that the author is in; `author` is the name of either.
    """

    kind: Literal["author"] = "author"
    author: str
    team: Team | None = None
    places: tuple[Place, ...]
    accepted: tuple[AcceptedRun, ...] = ()
    """Newest first."""
    attempts: tuple[Attempts, ...]


class Activity(Record):
    """The totals of an author or a team over all problems, for the list of authors; `team` as in `AuthorDocument`."""

    author: str
    team: Team | None = None
    problems: int
    boards: int
    verdicts: int
    accepted: int
    latest: datetime


class AuthorsDocument(Record):
    """Everybody who ever submitted, and their teams, in order of name."""

    kind: Literal["authors"] = "authors"
    authors: tuple[Activity, ...]


class First(Record):
    """The first row of a current board, and how many rows that board has."""

    problem: str
    rows: int
    leader: Leader


class DevicesDocument(Record):
    """Every device that has a board, and the first rows of the current boards of all devices."""

    kind: Literal["devices"] = "devices"
    devices: tuple[Device, ...]
    firsts: tuple[First, ...] = ()


class MethodDocument(Record):
    """How times are taken, with the protocols and timings of the boards.

    `accuracy` has the measured table of each device, as Markdown.
    """

    kind: Literal["method"] = "method"
    protocols: tuple[int, ...]
    timings: tuple[Timing, ...]
    accuracy: dict[str, str]
