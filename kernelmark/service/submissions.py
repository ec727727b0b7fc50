"""The documents of a submission: what a client sends, and what the server answers until there is a verdict."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, AwareDatetime, Base64Bytes, BaseModel, ConfigDict, Field

from harness.kinds import Effort
from harness.submission import MAX_BESIDE, BesideName, LanguageName
from harness.verdict import RUN_ID, Outcome, Stage
from kernelmark.service.refusal import RefusalDocument

Mode = Literal["check", "bench", "submit", "screen"]
"""`check` only tests, `bench` also times, `submit` also records, and `screen` times as in training. Only `submit`
reaches the ledger."""

SubmissionState = Literal["queued", "leased", "graded", "recorded", "done", "cancelled", "failed"]
"""The state of a grading. `graded`: its verdict is committed; `recorded`: the ledger has it; `done`: it has ended in
another mode than `submit`; `failed`: there is no verdict after all tries, without a fault of the submission."""

ENDED: tuple[SubmissionState, ...] = ("recorded", "done", "cancelled", "failed")

JobClass = Literal["people", "batch", "regrade"]
"""The classes share the devices 3 to 1 to 1."""


def _printable(text: str) -> str:
    if not text.isprintable():
        raise ValueError("holds characters that cannot be printed")
    return text


Slug = Annotated[str, Field(pattern=r"^[a-z0-9_]{1,64}$")]
Label = Annotated[str, Field(max_length=128), AfterValidator(_printable)]
"""Text in one line, which pages and terminals show."""
RunId = Annotated[str, Field(pattern=RUN_ID)]


class ServiceDocument(BaseModel):
    """The base of all documents between server, client and worker: immutable, and unknown keys are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class SourceFile(ServiceDocument):
    """An additional file of a submission."""

    name: BesideName
    content: Base64Bytes


class SubmissionRequest(ServiceDocument):
    """A submission as sent to `POST /api/v1/submissions` as JSON. A form has the same fields; see the routes.

    The server sets the author: it is the account's.
    """

    problem: Slug
    language: LanguageName
    source: Base64Bytes
    beside: Annotated[tuple[SourceFile, ...], Field(max_length=MAX_BESIDE)] = ()
    mode: Mode = "submit"
    effort: Effort = "default"
    pool: Label | None = None
    """The device's name; None: the first of the server's pools."""
    again: bool = False
    """Grade it even if the account had the same source graded within a day; else the answer is that run."""
    batch: Label | None = None
    """A label of the caller's; with one, it is of the class `batch`."""


class StageProgress(ServiceDocument):
    """Item `done` of `total` of a stage is about to begin."""

    stage: Stage
    done: Annotated[int, Field(ge=0)]
    total: Annotated[int, Field(ge=0)]
    label: Annotated[str, Field(max_length=200)]


class SubmissionStatus(ServiceDocument):
    """A submission as its owner sees it: the answer to submitting it, and to every later request about it."""

    run: RunId
    problem: Slug
    mode: Mode
    pool: str
    author: str
    received_at: AwareDatetime
    on_time: bool
    """Whether it was received before the deadline."""
    state: SubmissionState
    version: int
    """Grows with each change; `?after=VERSION&wait_s=20` waits for the next one."""
    before: int | None = None
    """How many gradings come before it, while it is queued."""
    expected_s: float | None = None
    """In about how many seconds it ends, if that is known."""
    waits_for: str = ""
    """Why it is not being graded, if nobody can: no worker of its pool is connected, or none has this problem."""
    progress: StageProgress | None = None
    outcome: Outcome | None = None
    """The verdict's, once it has one."""
    score_s: float | None = None
    error: str = ""
    """Why it has failed, in one line."""
    left: str = ""
    """What is left of the day's limits, in words; empty if there are none."""
    standing: str = ""
    """Its standing on the board, as `kernelmark runs` says it; in lists that were asked for with `standings=true`."""


class Submissions(ServiceDocument):
    """An account's own submissions, newest first. `GET /api/v1/submissions?last=20`; `problem=softmax`: on that one;
    `open=true`: only those that have not ended; `standings=true`: with their standings on the boards.
    """

    items: tuple[SubmissionStatus, ...]


class SelectionRequest(ServiceDocument):
    """Sent to `PUT /api/v1/selection`: the runs of one's own, all on one problem, that count once it is closed.

    The server sets the author: it is the account's.
    """

    runs: Annotated[tuple[RunId, ...], Field(min_length=1, max_length=100)]


class SelectedRuns(ServiceDocument):
    """A selection as it was recorded."""

    author: str
    runs: tuple[RunId, ...]
    sources: int
    """How many sources these runs are of."""
    warnings: tuple[str, ...] = ()
    """Runs among them that rank nowhere."""


class PoolStatus(ServiceDocument):
    """The devices of one pool."""

    pool: str
    workers: int
    """How many are connected and not paused."""
    devices: int
    leased: int
    queued: int
    expected_s: float | None = None
    """In about how many seconds a submission would end that is queued now, if that is known."""
    waits_for: tuple[str, ...] = ()
    """Why submissions wait although workers are connected: no worker has their version of the problem."""


class QueueStatus(ServiceDocument):
    """The whole queue, without names. `GET /api/v1/queue`, for everybody who is signed in."""

    pools: tuple[PoolStatus, ...]
    paused: str = ""
    """Why nothing is graded at present; empty if the queue is not paused."""
    problems: tuple[str, ...] = ()
    """What keeps the server from its work; only organizers are told."""


class QueueDocument(QueueStatus):
    """What `kernelmark queue --format json` prints: the queue, and one's own submissions that have not ended."""

    yours: tuple[SubmissionStatus, ...]


class NamedText(ServiceDocument):
    """One file of a submission."""

    name: str
    content: str


class SourceDocument(ServiceDocument):
    """The files of a submission, its main file first. `GET /api/v1/submissions/{run}/source`."""

    language: LanguageName
    files: tuple[NamedText, ...]


class LineAnswer(ServiceDocument):
    """The answer to one line of a request with many submissions."""

    line: int
    """From 1."""
    status: int
    """The status of the same request for one submission: 202, 200 if it existed already, or a refusal's."""
    submission: SubmissionStatus | None = None
    refusal: RefusalDocument | None = None


class Result(ServiceDocument):
    """A grading that has ended. `GET /api/v1/results?after=CURSOR` has them in the order in which they ended."""

    cursor: int
    """Give it as `after` to get what ended later."""
    run: RunId
    submission: RunId
    """The submission's id: the run of its first grading."""
    problem: Slug
    mode: Mode
    batch: str | None
    state: SubmissionState
    outcome: Outcome | None
    score_s: float | None
    error_class: str
