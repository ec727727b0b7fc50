"""What people read of submissions on a server: a line for each state, lists, and the queue. Pure.

The commands that ask a server print it. Trusted code over a server's text, which goes through `shown`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from kernelmark.client.connection import shown
from kernelmark.client.servers import KnownServer
from kernelmark.service.submissions import PoolStatus, QueueStatus, SubmissionStatus
from kernelmark.text.terminal import Line, columns, counted, labelled
from leaderboard.text.units import date, duration, local, minute

_LIST = ("received (UTC)", "run", "problem", "mode", "state", "time", "board")


def received(status: SubmissionStatus, *, new: bool) -> str:
    """What a submission gets as its first answer: when it was received, its run, and what is left of the limits."""
    at = local(status.received_at)
    zone = f"{at:%z}"
    when = f"{at:%H:%M:%S} UTC" + ("" if zone == "+0000" else f"{zone[:3]}:{zone[3:5]}")
    if at.date() != datetime.now().astimezone().date():
        when = f"{at:%Y-%m-%d} {when}"
    late = "" if status.mode != "submit" else ", on time" if status.on_time else ", after the deadline"
    text = f"{'submitted' if new else 'the same was submitted before,'} at {when}{late}; run {status.run}"
    if not new:
        return f"{text}; --again grades it once more"
    return f"{text}; left today: {shown(status.left)}" if status.left else text


def waiting(status: SubmissionStatus) -> str:
    """Why a submission has no result yet, in one line."""
    pool = shown(status.pool)
    if status.state == "graded":
        return "graded; waiting until it is recorded"
    if status.state != "queued":
        return f"begins on {pool}"
    if status.waits_for:
        return f"waiting: {shown(status.waits_for)}"
    place = "yours is next" if status.before == 0 else f"{status.before} before yours"
    first = f"waiting: {place} on {pool}" if status.before is not None else f"waiting for {pool}"
    return first + (f", {about(status.expected_s)}" if status.expected_s is not None else "")


def about(seconds: float) -> str:
    """A rough time: "about 40 s", "about 12 min", "about 5 h"."""
    if seconds < 90:
        return f"about {max(seconds, 1):.0f} s"
    return f"about {seconds / 60:.0f} min" if seconds < 5400 else f"about {seconds / 3600:.0f} h"


def submissions(found: Sequence[SubmissionStatus]) -> Iterator[str]:
    """A row for each submission: when, which run, on which problem, its state or outcome, its time and standing."""
    if not found:
        yield "nothing was submitted there yet"
        return
    yield Line(counted(len(found), "submission"), "bold")
    yield from columns([_cells(status) for status in found], head=_LIST)


def ended(status: SubmissionStatus) -> str:
    """The state of a submission as a word or two: its outcome once it has one."""
    if status.outcome is not None and status.state in ("recorded", "done"):
        return status.outcome.value.replace("_", " ")
    return {"leased": "being graded"}.get(status.state, status.state)


def queue(status: QueueStatus, mine: Sequence[SubmissionStatus]) -> Iterator[str]:
    """The devices of a server, how many submissions wait for each, and where one's own are."""
    for problem in status.problems:
        yield labelled("problem", shown(problem), "red")
    if status.paused:
        yield labelled("paused", shown(status.paused), "yellow")
    if not status.pools:
        yield "no devices were ever connected"
    for pool in status.pools:
        yield from _pool(pool)
    for own in mine:
        where = waiting(own) if own.state == "queued" or own.progress is None else f"being graded on {shown(own.pool)}"
        yield labelled("yours", f"run {own.run}, {own.problem}, {own.mode}: {where}")


def servers(known: dict[str, KnownServer]) -> Iterator[str]:
    """A row for each server that the user is signed in to."""
    if not known:
        yield "you are signed in to no server; `kernelmark login ADDRESS` signs in"
        return
    now = datetime.now(UTC)
    rows = [
        (name, server.origin, shown(server.account), date(server.ends) if server.ends > now else "ended")
        for name, server in known.items()
    ]
    yield from columns(rows, head=("name", "address", "account", "until"))


def _cells(status: SubmissionStatus) -> tuple[str, ...]:
    time = duration(round(status.score_s * 1e9)) if status.score_s is not None else ""
    said = ended(status), time, shown(status.standing)
    return minute(status.received_at), status.run, status.problem, status.mode, *said


def _pool(pool: PoolStatus) -> Iterator[str]:
    yield Line(shown(pool.pool), "bold")
    workers = f"{counted(pool.devices, 'device')} of {counted(pool.workers, 'worker')}"
    yield labelled("devices", workers if pool.workers else "no worker is connected")
    yield labelled("queue", f"{pool.leased} being graded, {pool.queued} waiting")
    for why in pool.waits_for:
        yield labelled("waiting", shown(why), "yellow")
    if pool.expected_s is not None and pool.workers:
        yield labelled("a new one", f"ends in {about(pool.expected_s)}")
