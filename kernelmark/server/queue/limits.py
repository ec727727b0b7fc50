"""The limits of a server: what an account and its team have used in 24 hours, and how much they have queued.

A use is a grading of this server, or a run that only a ledger has. A grading counts from when it is queued, with the
time that it is expected to take until it has ended. It counts for its account and for each team that the account was in
within the 24 hours. `admission` and `status` call it.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, bindparam, case, func, select

from kernelmark.project.phases import DailyLimits
from kernelmark.project.settings import Settings
from kernelmark.record.limits import LimitReachedError, LimitReservedError, Spent, Total
from kernelmark.server.clock import moment
from kernelmark.server.database.tables import accounts, gradings, memberships
from kernelmark.server.queue.endings import SPENT_ERROR
from kernelmark.server.queue.project_files import DAY_NS
from kernelmark.server.service import Service
from kernelmark.service.refusal import Refusal
from kernelmark.service.submissions import Mode
from leaderboard.record.teams import Team, shown
from leaderboard.standings.usage import Use

PUBLIC = DailyLimits(gradings_a_day=30, checks_a_day=60, device_seconds_a_day=600, queued_at_once=5)
"""The limits of a server that others can reach, where the project sets none."""
_MOST_FAILED = 5
_QUEUE_RETRY_S = 30
_RESERVED_RETRY_S = 60

_since = gradings.c.queued_ns > bindparam("since")
_is_shown = (gradings.c.visible_ns <= bindparam("now")) & gradings.c.device_ns.is_not(None)
_counted_ns = case((_is_shown, gradings.c.device_ns), else_=gradings.c.expected_ns)
_is_counted = gradings.c.charged | gradings.c.state.in_(("queued", "leased"))
_is_check = gradings.c.mode == "check"
_has_begun = (gradings.c.tries > 0) | (gradings.c.workers_failed != "[]") | gradings.c.progress.is_not(None)
_is_failure = (
    (gradings.c.state == "failed") & ~gradings.c.charged & (_has_begun | (gradings.c.error_class != SPENT_ERROR))
)
_of_account_and_team = (
    ((gradings.c.owner == bindparam("owner")) & _since)
    | (gradings.c.account.in_(bindparam("members", expanding=True)) & _since),
    gradings.c.job_class != "regrade",
)
_TOTAL = select(
    func.count(case((_is_counted & ~_is_check, 1))),
    func.count(case((_is_counted & _is_check, 1))),
    func.coalesce(func.sum(case((_is_counted & _is_shown, gradings.c.device_ns))), 0),
    func.coalesce(func.sum(case((_is_counted & case((_is_shown, False), else_=True), gradings.c.expected_ns))), 0),
    func.count(case((_is_failure, 1))),
).where(*_of_account_and_team)
_USES = (
    select(
        *(gradings.c.run, gradings.c.queued_ns, _is_check.label("check"), _counted_ns.label("counted_ns")),
        case((_is_shown, False), else_=True).label("reserved"),
    )
    .where(*_of_account_and_team, _is_counted)
    .order_by(gradings.c.queued_ns)
)
_LIMITING_FAILURE = (
    select(gradings.c.queued_ns)
    .where(*_of_account_and_team, _is_failure)
    .order_by(gradings.c.queued_ns.desc())
    .offset(_MOST_FAILED - 1)
    .limit(1)
)
_OPEN = (
    select(func.count())
    .select_from(gradings)
    .where(gradings.c.owner == bindparam("owner"), gradings.c.state.in_(("queued", "leased")))
)
_HIDDEN_ENDS = select(gradings.c.owner).where(gradings.c.visible_ns > bindparam("now"))


def limits_at(settings: Settings, now_ns: int) -> DailyLimits:
    """The limits at a moment: of the phase, or else of the project, completed by the defaults of public servers."""
    phase = settings.phase(moment(now_ns))
    configured = phase.limits if phase is not None and phase.limits is not None else settings.limits
    if not settings.server.public:
        return configured
    return PUBLIC.model_copy(update=configured.model_dump(exclude_none=True))


def refuse_more(
    connection: Connection, service: Service, account: Row[Any], owner: str, received_ns: int, mode: Mode
) -> None:
    """Check that no limit keeps an account from submitting once more.

    Args:
        owner: the account or team that the submission counts for; see `owner_of`.

    Raises:
        Refusal: a limit is reached; it says from when on it is not.
    """
    settings = service.project.settings
    limits = limits_at(settings, received_ns)
    if limits == DailyLimits():
        return
    who = shown(account.name, None if account.team is None else Team(name=account.team, members=()))
    _refuse_full_queue(connection, limits, owner, who, service.clock.now_ns())
    uses = _Uses(connection, service, account, owner, received_ns)
    total, failed = uses.total()
    try:
        Spent(limits, total, uses.read).refuse_more(who, check=mode == "check")
        if settings.server.public and failed >= _MOST_FAILED:
            what = f"has had {failed} gradings end with errors of the workers in 24 hours"
            raise LimitReachedError(who, what, uses.possible_again())
    except LimitReachedError as error:
        wait_s = max(1, -(-(round(error.again.timestamp() * 1e9) - received_ns) // 10**9))
        raise Refusal(429, "limit-reached", error.where, error.what, error.remedy, retry_after_s=wait_s) from None
    except LimitReservedError as error:
        where, what, remedy = error.where, error.what, error.remedy
        raise Refusal(429, "limit-reached", where, what, remedy, retry_after_s=_RESERVED_RETRY_S) from None
    most_s, day_s = limits.all_device_seconds_a_day, service.files.totals.day_device_ns / 1e9
    if most_s is not None and day_s >= most_s:
        what = f"all submissions together have used {day_s:.0f} of {most_s} device seconds in 24 hours"
        raise Refusal(429, "limit-reached", "the server", what, "submit again later", retry_after_s=3600)


def left(connection: Connection, service: Service, account: Row[Any], owner: str) -> str:
    """What an account has left today, in words; empty if there are no limits."""
    now_ns = service.clock.now_ns()
    limits = limits_at(service.project.settings, now_ns)
    if (limits.gradings_a_day, limits.checks_a_day, limits.device_seconds_a_day) == (None, None, None):
        return ""
    uses = _Uses(connection, service, account, owner, now_ns)
    return Spent(limits, uses.total()[0], uses.read).left()


class _Uses:
    """The uses of an account and its team. `total` reads no rows one by one: a day may have thousands."""

    def __init__(self, connection: Connection, service: Service, account: Row[Any], owner: str, now_ns: int) -> None:
        since = now_ns - DAY_NS
        members = {account.id: account.name}
        if account.team is not None:
            members |= dict(_members(connection, account.team, since))
        self._connection, self._author = connection, account.name
        self._values = {"owner": owner, "members": list(members), "since": since, "now": service.clock.now_ns()}
        names, start = {*members.values(), account.team}, moment(since)
        self._elsewhere = [use for use in service.files.snapshot.uses if use.author in names and use.at > start]

    def total(self) -> tuple[Total, int]:
        """The sum of all uses, and how many gradings have failed without a fault of their owners."""
        *here, failed = self._connection.execute(_TOTAL, self._values).one()
        return Total(*here).plus(Total.of(self._elsewhere)), failed

    def read(self) -> list[Use]:
        """All uses, oldest first."""
        here = [
            Use(self._author, moment(row.queued_ns), row.counted_ns, row.check, row.run, bool(row.reserved))
            for row in self._connection.execute(_USES, self._values)
        ]
        return sorted([*here, *self._elsewhere], key=lambda use: use.at)

    def possible_again(self) -> datetime:
        """When enough failures are more than a day old, if too many gradings have failed."""
        return moment(self._connection.execute(_LIMITING_FAILURE, self._values).scalar_one() + DAY_NS)


def _members(connection: Connection, team: str, since_ns: int) -> list[tuple[int, str]]:
    """The accounts that were in a team since then, by their ids."""
    now = select(accounts.c.id, accounts.c.name).where(accounts.c.team == team)
    before = (
        select(accounts.c.id, accounts.c.name)
        .join(memberships, memberships.c.account == accounts.c.id)
        .where(memberships.c.team == team, memberships.c.left_ns > since_ns)
    )
    return [(row.id, row.name) for query in (now, before) for row in connection.execute(query)]


def _refuse_full_queue(connection: Connection, limits: DailyLimits, owner: str, who: str, now_ns: int) -> None:
    """A grading that has ended counts as queued until its end is shown: a refusal that ceases would reveal it."""
    if limits.queued_at_once is None:
        return
    number = (connection.scalar(_OPEN, {"owner": owner}) or 0) + (
        connection.scalars(_HIDDEN_ENDS, {"now": now_ns}).all().count(owner)
    )
    if number >= limits.queued_at_once:
        what = f"has {number} of {limits.queued_at_once} submissions in the queue"
        remedy = "submit again when one of them has ended"
        raise Refusal(429, "queue-full", who, what, remedy, retry_after_s=_QUEUE_RETRY_S)
