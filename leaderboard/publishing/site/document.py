"""The content of each page as data: it is passed to the page's template, and published as JSON next to the page.

Times are in nanoseconds. The schemas are published under `schema/`. Trusted; names, messages and sources in these
documents are hostile text.
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import Field

from harness.verdict import FrozenModel, Interval, LaunchedKernel, Mismatch, Outcome, Ratio, Timing, Verdict
from harness.verdict.roofline import Calibration
from leaderboard.publishing.site.statement import Statement
from leaderboard.record.fields import TableKey
from leaderboard.record.pooling import RowState
from leaderboard.record.profile import StoredProfile
from leaderboard.record.teams import Team, shown
from leaderboard.standings.notice import Notice
from leaderboard.standings.ranking import Row, Table
from leaderboard.standings.staleness import Stale


class Step(FrozenModel):
    """A record: a new source whose interval is entirely below that of the record before it on its board, if that is of
    another card by more than what cards may differ by.

    `run` and `at` are those of its first grading; `score_ns` is pooled over all its gradings.
    """

    run: str
    author: str
    team: Team | None = None
    at: datetime
    score_ns: int

    @property
    def who(self) -> str:
        """Author and team, as a board names them."""
        return shown(self.author, self.team)


class Board(Table):
    """A table with its records; `current` is false for an older version of the problem or of the protocol.

    A row of `baselines` is the row of a run that a baseline alternated with, with the baseline's name and time.
    """

    current: bool
    baselines: tuple[Row, ...] = ()
    records: tuple[Step, ...] = ()


class Leader(FrozenModel):
    """The first row of a board, which may have no rank, and the board's records; `current` as in `Board`."""

    key: TableKey
    current: bool
    row: Row
    records: tuple[Step, ...] = ()


class Summary(FrozenModel):
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
    """Whether the problem no longer accepts submissions."""
    leaders: tuple[Leader, ...] = ()
    interpreted: bool = False


class Overall(FrozenModel):
    """An author's geometric mean of shares of the roofline over the problems with a ranked row on a current board.

    Boards of Triton's interpreter do not count. For a team, `author` is its name.
    """

    author: str
    share: float
    problems: int


class RankedDevice(FrozenModel):
    """A device with boards: what was ranked on it, and its calibration, if it has one."""

    name: str
    kind: Literal["cpu", "cuda"]
    boards: int
    rows: int
    problems: tuple[str, ...]
    calibration: Calibration | None = None


class Holder(FrozenModel):
    """A past or current record, and the time that it improved upon."""

    problem: str
    device_name: str
    how_timed: str = ""
    """How its board was timed, as in the title of the board."""
    step: Step
    before_ns: int | None = None


class FrontDocument(FrozenModel):
    """The front page."""

    kind: Literal["front"] = "front"
    problems: tuple[Summary, ...]
    overall: tuple[Overall, ...] = ()
    devices: tuple[RankedDevice, ...]
    records: tuple[Holder, ...]
    activity: dict[str, tuple[int, int]]
    """By date (UTC): the number of verdicts, and how many of them were accepted."""
    phase: str = ""
    announcements: tuple[Notice, ...] = ()


class ProblemDocument(FrozenModel):
    """A problem with its boards."""

    kind: Literal["problem"] = "problem"
    statement: Statement
    boards: tuple[Board, ...]
    announcements: tuple[Notice, ...] = ()


class RunDocument(FrozenModel):
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
    """Whether that run is a newer grading of the same source."""


class ProfileDocument(FrozenModel):
    """The profile that is stored with a run; the submission could have faked it."""

    kind: Literal["profile"] = "profile"
    problem: str
    author: str
    submission: str
    profile: StoredProfile


class CaseKernels(FrozenModel):
    """The kernels that a call of one case launches in both runs, the longest first."""

    case: str
    one: tuple[LaunchedKernel, ...] = ()
    other: tuple[LaunchedKernel, ...] = ()


class Compared(FrozenModel):
    """One case of both runs. `faster` is the second's time over the first's; `paired` is the same ratio through a
    baseline that both alternated with, which a warm chip affects less."""

    case: str
    one: Interval
    other: Interval
    faster: Ratio | None
    paired: Ratio | None = None
    baseline: str | None = None


class ComparisonDocument(FrozenModel):
    """Two runs of one board, case by case, with the diff of their sources if those may be shown."""

    kind: Literal["comparison"] = "comparison"
    problem: str
    key: TableKey
    one: Row
    other: Row
    faster: Ratio | None = None
    """The second's pooled time over the first's."""
    paired: Ratio | None = None
    """The same ratio over all cases through a baseline that both alternated with, whose name is in `baseline`."""
    baseline: str | None = None
    cases: tuple[Compared, ...]
    kernels: tuple[CaseKernels, ...] = ()
    diff: tuple[str, ...] | None = None
    hidden: str = ""


class Standing(FrozenModel):
    """An author's or a team's place on one board; `current` as in `Board`."""

    problem: str
    key: TableKey
    of: int
    row: Row
    current: bool = True


Counts = Literal["itself", "newer_grading", "other_source"]


class AcceptedRun(FrozenModel):
    """An accepted run, and where it stands on its board; `current` as in `Board`, `state` as in `RunDocument`.

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
    counts: Counts
    row: str
    rank: int | None = None
    state: RowState = "ranks"
    of: int
    current: bool


class Reason(FrozenModel):
    """Where a failed run was wrong: a case, and the mismatch if an output was compared."""

    case: str
    message: str
    mismatch: Mismatch | None = None


class Failure(FrozenModel):
    """A run that was not accepted, with a report for its author."""

    hash: str
    """The hash of its line in the ledger."""
    run: str
    name: str
    language: str
    outcome: Outcome
    message: str
    device_name: str
    created_at: datetime
    reasons: tuple[Reason, ...]


class ProblemAttempts(FrozenModel):
    """An author's or a team's results on one problem."""

    problem: str
    outcomes: dict[str, int]
    latest: datetime
    failures: tuple[Failure, ...] = ()
    """The newest."""


class AuthorDocument(FrozenModel):
    """An author or a team: standings, accepted runs that have a page, and the newest failed ones with their reports.

    `team` is the team itself, or the team of the author; `author` is the name of the author or the team.
    """

    kind: Literal["author"] = "author"
    author: str
    team: Team | None = None
    places: tuple[Standing, ...]
    accepted: tuple[AcceptedRun, ...] = ()
    """Newest first."""
    attempts: tuple[ProblemAttempts, ...]


class AuthorTotals(FrozenModel):
    """The totals of an author or a team over all problems, for the list of authors; `team` as in `AuthorDocument`."""

    author: str
    team: Team | None = None
    problems: int
    boards: int
    verdicts: int
    accepted: int
    latest: datetime


class AuthorsDocument(FrozenModel):
    """Everybody who ever submitted, and their teams, in order of name."""

    kind: Literal["authors"] = "authors"
    authors: tuple[AuthorTotals, ...]


class First(FrozenModel):
    """The first row of a current board, and how many rows that board has."""

    problem: str
    rows: int
    leader: Leader


class DevicesDocument(FrozenModel):
    """Every device that has a board, and the first rows of the current boards of all devices."""

    kind: Literal["devices"] = "devices"
    devices: tuple[RankedDevice, ...]
    firsts: tuple[First, ...] = ()


class MethodDocument(FrozenModel):
    """How times are taken, with the protocols and timings of the boards.

    `accuracy` has the measured table of each device, as Markdown.
    """

    kind: Literal["method"] = "method"
    protocols: tuple[int, ...]
    timings: tuple[Timing, ...]
    accuracy: dict[str, str]
