"""Reads what a server shows: one's own submissions, recorded runs, problems and boards.

`kernelmark board`, `problems`, `runs`, `show`, `queue`, `watch`, `cancel` and `submit --to` call it. Trusted; what is
read is checked by its model, and its texts are made visible where they are printed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar
from urllib.parse import quote

from pydantic import BaseModel, ConfigDict

from harness.errors import HarnessError, UsageError
from harness.verdict import Check, Verdict
from kernelmark.client.connection import Connection, Refused, short, shown, tolerantly
from kernelmark.service.submissions import Submissions, SubmissionStatus
from kernelmark.text.problems import ProblemList
from kernelmark.text.terminal import visible
from leaderboard.record.moderation import Moderation
from leaderboard.standings.ranking import Table

_DIGITS = 16  # of a run's id
_LOOKED_AT = 200  # submissions, for an id of which only the first digits are given

C = TypeVar("C", bound=Check)


class Boards(BaseModel):
    """What `kernelmark board --format json` prints, and a server answers."""

    model_config = ConfigDict(extra="ignore")

    items: tuple[Table, ...]


def problems(connection: Connection) -> ProblemList:
    """The problems that a server grades, in the order of their slugs.

    Raises:
        Refused, Unreachable, HarnessError: as for `Connection.get`.
    """
    return connection.get("problems", ProblemList)


def problem_text(connection: Connection, slug: str) -> list[str]:
    """What a problem asks for, as lines without controls.

    Raises:
        Refused, Unreachable: as for `Connection.get`.
    """
    content = connection.get_bytes(f"problems/{quote(slug, safe='')}/text")
    return [visible(line) for line in content.decode(errors="replace").splitlines()]


def start(connection: Connection, slug: str, start: str) -> str:
    """The text of a first submission in a language, as `kernelmark start` has it.

    Raises:
        Refused, Unreachable: as for `Connection.get`.
        HarnessError: it is no text.
    """
    try:
        return connection.get_bytes(f"problems/{quote(slug, safe='')}/start/{start}").decode()
    except UnicodeDecodeError:
        raise HarnessError(f"what {connection.origin} answered is not UTF-8 text") from None


def tables(connection: Connection, problem: str | None) -> list[Table]:
    """The standings of a problem, or of all.

    Raises:
        Refused, Unreachable, HarnessError: as for `Connection.get`.
    """
    return [*connection.get(f"boards/{quote(problem, safe='')}" if problem else "boards", Boards).items]


def own(
    connection: Connection,
    *,
    last: int = 20,
    problem: str | None = None,
    only_open: bool = False,
    standings: bool = False,
) -> Sequence[SubmissionStatus]:
    """One's own submissions, newest first: on one problem, those that have not ended, or with standings, if asked for.

    Raises:
        Refused, Unreachable, HarnessError: as for `Connection.get`.
    """
    parameters: dict[str, str | int] = {"last": last}
    if problem is not None:
        parameters["problem"] = problem
    if only_open:
        parameters["open"] = "true"
    if standings:
        parameters["standings"] = "true"
    return connection.get("submissions", Submissions, parameters=parameters).items


def whole_run(connection: Connection, run: str) -> str:
    """The whole id of a run, of which only its first digits may be given.

    Raises:
        UsageError: none of one's own submissions begins so, or several do.
        Unreachable, HarnessError: as for `Connection.get`.
    """
    if not run or set(run) - set("0123456789abcdef") or len(run) > _DIGITS:
        raise UsageError(f"run {shown(run)}", "is not a run id", "`kernelmark runs --from SERVER` lists yours")
    if len(run) == _DIGITS:
        return run
    matching = [status.run for status in own(connection, last=_LOOKED_AT) if status.run.startswith(run)]
    if len(matching) == 1:
        return matching[0]
    if matching:
        raise UsageError(f"run {run}", f"could be {', '.join(matching[:4])}", "give more digits")
    what = f"is none of your last {_LOOKED_AT} submissions there"
    raise UsageError(f"run {run}", what, f"give all {_DIGITS} digits")


def recorded(connection: Connection, run: str) -> Verdict:
    """The verdict of a run that everybody may see, or of one's own.

    Raises:
        Refused: there is none, or one may not see it.
        Unreachable, HarnessError: as for `Connection.get`.
    """
    try:
        return verdict_of(connection, f"runs/{run}", Verdict.from_json)
    except Refused as error:
        if error.status not in (401, 403, 404):
            raise
        try:
            return verdict_of(connection, f"submissions/{run}/verdict", Verdict.from_json)
        except Refused:
            raise error from None


def moderation(connection: Connection, verdict: Verdict) -> list[Moderation]:
    """The events about a run that its board shows, oldest first.

    Raises:
        Unreachable, HarnessError: as for `Connection.get`.
    """
    run = verdict.submission
    about = {("run", verdict.run), ("source", run.sha256), ("author", run.author)}
    try:
        boards = tables(connection, verdict.problem.slug)
    except Refused:  # the problem is no longer there
        return []
    rows = [row for table in boards for row in (*table.rows, *table.set_aside)]
    found = {event.id: event for row in rows for event in row.moderation if event.about in about}
    return sorted(found.values(), key=lambda event: event.created_at)


def verdict_of(connection: Connection, path: str, read: Callable[[bytes], C]) -> C:
    """A verdict or check, as `read` makes it of the server's answer.

    Raises:
        Refused, Unreachable: as for `Connection.get_bytes`.
        HarnessError: it is none that this version reads.
    """
    content = connection.get_bytes(path)
    try:
        return tolerantly(read, content)
    except ValueError as error:
        what = f"the verdict of {connection.origin} is none that this version of kernelmark reads ({short(error)})"
        raise HarnessError(what, connection.other_version()) from None
