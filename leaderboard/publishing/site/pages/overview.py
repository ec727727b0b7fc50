"""The pages about the whole site: front page, devices, method, and the feed of records. Trusted; pure."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from functools import cache
from typing import Any

from markupsafe import Markup

from leaderboard.publishing.site import boards, markup, paths
from leaderboard.publishing.site.book import Book
from leaderboard.publishing.site.charts.plot import Axis, Point, Series, linear, plot
from leaderboard.publishing.site.document import (
    DevicesDocument,
    FrontDocument,
    MethodDocument,
    RankedDevice,
    Summary,
)
from leaderboard.publishing.site.folder import Page, as_text, key
from leaderboard.publishing.site.inputs import Kind, Link, Site
from leaderboard.publishing.site.statement import Statement
from leaderboard.text.plural import counted

_RECORDS, _FEED = 20, 40
_OVERALL = 20
_FIRSTS = 60  # maximum number of boards of a device, which keeps the page below 300 KB
_WEEKS = 52
_ACCURACY = markup.HERE / "accuracy"  # how close scores come to CUPTI's times, by `benchmarks.accuracy`: a file per GPU


def pages(site: Site) -> Iterator[Page]:
    devices = boards.devices(site.books, site.material.calibrations)
    yield _front(site, devices)
    yield _devices(site, devices)
    yield _method(site)
    yield _feed(site)


def _front(site: Site, devices: tuple[RankedDevice, ...]) -> Page:
    books = {book.problem: book for book in site.books}
    activity: dict[str, tuple[int, int]] = {}
    for book in site.books:
        for day, (all_, good) in book.activity.items():
            known = activity.get(day, (0, 0))
            activity[day] = known[0] + all_, known[1] + good
    summaries = (_summary(site, statement, books.get(statement.slug)) for statement in site.problems)
    document = FrontDocument(
        problems=tuple(sorted(summaries, key=lambda summary: (not summary.verdicts, not summary.leaders))),
        overall=boards.overall(site.books),
        devices=devices,
        records=boards.holders(site.books, _RECORDS),
        activity=dict(sorted(activity.items())),
        phase=site.material.phase,
        announcements=site.material.announcements,
    )

    def make() -> tuple[FrontDocument, dict[str, Any]]:
        leaders = [leader for problem in document.problems for leader in problem.leaders]
        return document, {
            "activity": _activity(document.activity),
            "shares": any(leader.row.share is not None for leader in leaders),
            "faster": any(boards.speedup(leader.row) is not None for leader in leaders),
            "courses": any(len(leader.records) > 1 for leader in leaders),
            "deadlines": any(problem.deadline is not None for problem in document.problems),
            "most": _OVERALL,
        }

    parts = (document.model_dump_json(), as_text(sorted(site.titles.items())))
    return site.page(paths.FRONT, "front.html", parts, make)


def _summary(site: Site, statement: Statement, book: Book | None) -> Summary:
    facts: dict[str, Any] = {
        "slug": statement.slug,
        "title": statement.title,
        "tags": statement.tags,
        "deadline": statement.rule.deadline,
        "closed": bool(site.closed(statement)),
    }
    if book is None:
        return Summary(**facts, verdicts=0, accepted=0, authors=0)
    current = [board for board in book.current if board.rows]
    return Summary(
        **facts,
        verdicts=sum(all_ for all_, _ in book.activity.values()),
        accepted=sum(good for _, good in book.activity.values()),
        authors=len(book.authors),
        leaders=boards.leaders(book),
        interpreted=bool(current) and all(board.key.interpreted for board in current),
    )


def _devices(site: Site, devices: tuple[RankedDevice, ...]) -> Page:
    document = DevicesDocument(devices=devices, firsts=tuple(boards.firsts(site.books)))
    parts = (document.model_dump_json(), as_text(sorted(site.titles.items())))
    return site.page(paths.DEVICES, "devices.html", parts, lambda: (document, {"shown": _FIRSTS}))


def _method(site: Site) -> Page:
    keys = [board.key for book in site.books for board in book.boards]
    document = MethodDocument(
        protocols=tuple(sorted({key.protocol for key in keys})),
        timings=tuple(sorted({key.timing for key in keys})),
        accuracy=_accuracy(),
    )

    def make() -> tuple[MethodDocument, dict[str, Any]]:
        return document, {"accuracy": [(name, markup.markdown(text, 2)) for name, text in document.accuracy.items()]}

    return site.page(paths.METHOD, "method.html", (document.model_dump_json(),), make)


@cache
def _accuracy() -> dict[str, str]:
    """For each GPU, by name, a Markdown table with one row per kernel and times in µs."""
    measured = (json.loads(file.read_text(encoding="utf-8")) for file in sorted(_ACCURACY.glob("*.json")))
    return {device["device"]: "\n".join(_lines(device["rows"])) + "\n" for device in measured}


def _lines(rows: dict[str, dict[str, Any]]) -> Iterator[str]:
    yield "| kernel | CUPTI, µs | score − CUPTI, µs | |"
    yield "|:---|---:|---:|---:|"
    for name, row in rows.items():
        reference, bias = row["cupti_graph_cold"]["us"], row["bias_us"]
        beyond = "" if row["met"] else "**"
        yield f"| {name} | {reference:,.2f} | {beyond}{bias:+.2f}{beyond} | {100 * bias / reference:+.1f} % |"


def _feed(site: Site) -> Page:
    entries = boards.holders(site.books, _FEED)
    oldest = min((step.run for book in site.books for board in book.boards for step in board.records[:1]), default="")
    ids = {entry.step.run: uuid.uuid5(uuid.NAMESPACE_OID, f"kernelmark {entry.step.run}").urn for entry in entries}
    stamps = {entry.step.run: _stamp(entry.step.at) for entry in entries}
    values = {
        "title": site.material.name,
        "entries": entries,
        "ids": ids,
        "stamps": stamps,
        "id": uuid.uuid5(uuid.NAMESPACE_OID, f"kernelmark feed {oldest}").urn,
        "updated": max(stamps.values(), default=_stamp(datetime(1970, 1, 1, tzinfo=UTC))),
    }
    parts = site.version, site.material.name, as_text(entries), as_text(sorted(site.titles.items())), oldest
    return Page((paths.FEED,), key(*parts), lambda: {paths.FEED: site.rendered("feed.xml", paths.FEED, **values)})


def _stamp(moment: datetime) -> str:
    return moment.replace(microsecond=0).isoformat()


def _activity(days: dict[str, tuple[int, int]]) -> Markup | None:
    """Runs per week as a bar chart, up to the last week with any; None if there are none."""
    weeks: dict[date, list[int]] = {}
    for day, (all_, good) in days.items():
        at = date.fromisoformat(day)
        week = weeks.setdefault(at - timedelta(days=at.weekday() if at > date(1, 1, 7) else 0), [0, 0])
        week[0] += all_
        week[1] += good
    if not weeks:
        return None
    last = max(weeks)
    shown = {week: counts for week, counts in sorted(weeks.items()) if (last - week).days < 7 * _WEEKS}
    first = min(shown)
    span = (last - first).days // 7 + 1
    bars = [(index, shown.get(first + timedelta(days=7 * index), [0, 0])) for index in range(span)]
    step = max(1, -(-span // 6))
    ticks = [(index + 0.5, f"{first + timedelta(days=7 * index):%Y-%m-%d}") for index in range(0, span, step)]
    y = linear([float(counts[0]) for _, counts in bars], lambda value, _: f"{value:,.0f}", "runs", zero=True)
    y = replace(y, ticks=[tick for tick in y.ticks if tick[0] == round(tick[0])])
    series = [
        Series("area-faint", _bars([(index, counts[0]) for index, counts in bars])),
        Series("area", _bars([(index, counts[1]) for index, counts in bars])),
    ]
    runs, good = (sum(counts[index] for _, counts in bars) for index in (0, 1))
    title = f"Activity: {counted(runs, 'run')} in {counted(span, 'week')}, {good:,} accepted"
    return plot(title, Axis(-0.3, max(6, span) + 0.3, ticks, "week of"), y, series, width=720, height=180)


def _bars(counts: list[tuple[int, int]]) -> list[Point | None]:
    points: list[Point | None] = []
    for index, count in counts:
        points += [(index + 0.1, 0.0), (index + 0.1, float(count)), (index + 0.9, float(count)), (index + 0.9, 0.0)]
    return points


KIND = Kind(
    pages,
    (FrontDocument, DevicesDocument, MethodDocument),
    (Link(paths.DEVICES, "Devices"), Link(paths.METHOD, "Method")),
)
