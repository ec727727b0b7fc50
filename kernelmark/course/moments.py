"""When submissions were handed in, as an organizer says it: `kernelmark grade PROBLEM HANDINS --handed-in WHEN`.

Trusted. The times of files and of an archive's members do not count: the author of a file sets its time. A table of
moments comes from the organizer, who has them from the learning platform.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime
from pathlib import Path

from harness.errors import UsageError
from harness.problem import Problem
from harness.problem.schedule import Delay
from kernelmark.course.owner import Owner
from kernelmark.course.submissions import CourseSubmission, Moments
from kernelmark.text import spreadsheet

_OPTION = "--handed-in"
_COLUMNS = ("author", "handed_in")
_ELSE = "record all as late (--late NAME), or grade without recording (--no-record)"


def moments(given: str | None, problem: Problem, now: datetime, *, needed: bool) -> Moments:
    """When each submission was handed in: as `given` says, a moment or a CSV file with one for each author.

    Without it they count as handed in now, as long as that is on time. After the deadline it is not known when they
    were, which is an error if it is `needed`.

    Raises:
        UsageError: it is needed, is neither a moment nor such a file, is in the future, or is after the problem was
            closed, although it is `needed`.
    """
    if given is None:
        known = None if problem.delay(now).days else now
        if known is None and needed:
            what = f"its deadline has passed ({problem.schedule_at(now)}), so it matters when these were handed in"
            raise UsageError(f"problem {problem.slug}", what, f"say so with {_OPTION}, {_ELSE}")
        return lambda submitted: known
    with suppress(OSError, ValueError):  # a text that no file can be called
        if Path(given).is_file():
            return _by_table(Path(given), now)
    moment = _moment(given, _OPTION, now)
    if needed and problem.closed(moment):
        what = f"takes no more submissions, {problem.schedule_at(moment)}"
        raise UsageError(f"problem {problem.slug}", what, f"give an earlier {_OPTION}, {_ELSE}")

    def of_all(submitted: CourseSubmission) -> datetime:
        if submitted.marked_late and not problem.delay(moment).days:
            what = f"is marked LATE in its name, but {_OPTION} says that all came on time"
            raise UsageError(submitted.path, what, f"give {_OPTION} a CSV file with a moment for each author")
        return moment

    return of_all


def delay(problem: Problem, submitted: CourseSubmission, moments: Moments) -> Delay | None:
    """How late it was handed in; None if that is not known."""
    try:
        moment = moments(submitted)
    except UsageError:
        return None  # grading it says why
    return None if moment is None else problem.delay(moment)


def _by_table(file: Path, now: datetime) -> Moments:
    by_id, by_name = _table(file, now)

    def of_one(submitted: CourseSubmission) -> datetime:
        named = [by_id[submitted.owner.id]] if submitted.owner.id in by_id else []
        for name in () if named else dict.fromkeys(submitted.names):
            named += by_name.get(name, [])
        if not named:
            raise UsageError(str(file), f"has no row for {submitted.author}", f"add one, or grade without {_OPTION}")
        if len(named) > 1:
            raise UsageError(str(file), f"has {len(named)} rows for {submitted.author}", "leave one")
        return named[0]

    return of_one


def _table(file: Path, now: datetime) -> tuple[dict[str, datetime], dict[str, list[datetime]]]:
    """The moments in a CSV file, which may have other columns as well: by the id in an author's name, as the platform
    writes it, and by the name without.
    """
    by_id, by_name, seen = dict[str, datetime](), dict[str, list[datetime]](), set[tuple[str, str]]()
    for where, cells in spreadsheet.read(file, _COLUMNS):
        owner = Owner.of(cells["author"])
        name = Owner(owner.name).author
        if (owner.id, name) in seen:
            remedy = "leave one row for each author, of two with this name as marks.csv names them"
            raise UsageError(where, f"names {owner.name or owner.author} again", remedy)
        seen.add((owner.id, name))
        moment = _moment(cells["handed_in"], where, now)
        by_name.setdefault(name, []).append(moment)
        if owner.id:
            by_id[owner.id] = moment
    return by_id, by_name


def _moment(text: str, where: str, now: datetime) -> datetime:
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None or moment.year < 1970:
        what = "is not a date and time with its offset" if text.strip() else "has no moment"
        named = f"{text.strip()!r:.80} {what}" if text.strip() else what
        raise UsageError(where, named, "write it like 2027-01-31T23:59:00+01:00, or name a CSV file")
    if moment > now:
        raise UsageError(where, f"{text.strip()} is in the future", "say when it was handed in")
    return moment
