"""When submissions were handed in, by the organizer's statement: `kernelmark grade PROBLEM HANDINS --handed-in WHEN`.

Trusted. File times, also in archives, do not count, since authors can set them. A table of times comes from the
organizer: a CSV file of their own, an older `marks.csv`, or a sheet of the platform, such as Moodle's grading
worksheet. A time without an offset is in the time zone of the deadline.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from harness.errors import UsageError
from harness.problem import Problem
from harness.problem.schedule import Delay, shown
from kernelmark.course.owner import Owner, whose
from kernelmark.course.submissions import CourseSubmission
from kernelmark.text import spreadsheet
from kernelmark.text.terminal import say

SubmissionTimes = Callable[[CourseSubmission], datetime | None]
"""Returns when a submission was handed in; None if that is unknown.

Raises:
    UsageError: the organizer's statement has no time for it, or contradicts the platform.
"""
_OPTION = "--handed-in"
# The name of the column with the times in our files, and in those of Moodle, Gradescope and Canvas. Canvas has it in
# its reports and its API; the gradebook that it exports has no times.
_COLUMNS = ("handed_in", "last modified (submission)", "submission time", "submission date", "submitted_at")
_ByKey = dict[str, list[datetime]]
_NOTHING = {"", "-"}  # the cell of someone who submitted nothing
# Gradescope's format, then Moodle's in British and in American English, and with a 24-hour clock.
_FORMS = (
    "%Y-%m-%d %H:%M:%S %z", "%A, %d %B %Y, %I:%M %p", "%A, %B %d, %Y, %I:%M %p", "%A, %d %B %Y, %H:%M",
)  # fmt: skip
_ELSE = "record all as late (--late NAME), or grade without recording (--no-record)"


def submission_times(stated: str | None, problem: Problem, now: datetime, *, needed: bool) -> SubmissionTimes:
    """A function that returns when a submission was handed in.

    `stated` is one time for all submissions, or the path of a CSV file with a time for each author. Without it, before
    the deadline, all count as handed in `now`; after the deadline their times are unknown, which is an error if they
    are `needed`.

    Raises:
        UsageError: times are needed and unknown, `stated` is neither a time nor a table, a time is in the future, or
            times are needed and one is after the problem was closed.
    """
    if stated is None:
        known = None if problem.delay(now).days else now
        if known is None and needed:
            what = f"its deadline has passed ({problem.schedule_at(now)}), so it matters when these were handed in"
            raise UsageError(f"problem {problem.slug}", what, f"say so with {_OPTION}, {_ELSE}")
        return lambda submitted: known
    with suppress(OSError, ValueError):  # it is not valid as a path
        if Path(stated).is_file():
            return _by_table(Path(stated), problem, now)
    moment = _moment(stated, _OPTION, problem, now)
    _say_zone(_OPTION, [stated], problem)
    if needed and problem.closed(moment):
        what = f"takes no more submissions, {problem.schedule_at(moment)}"
        raise UsageError(f"problem {problem.slug}", what, f"give an earlier {_OPTION}, {_ELSE}")

    def of_all(submitted: CourseSubmission) -> datetime:
        if submitted.marked_late and not problem.delay(moment).days:
            what = f"is marked LATE in its name, but {_OPTION} says that all came on time"
            raise UsageError(submitted.path, what, f"give {_OPTION} a CSV file with a moment for each author")
        return moment

    return of_all


def delay(problem: Problem, submitted: CourseSubmission, submitted_at: SubmissionTimes) -> Delay | None:
    """How late it was handed in; None if that is unknown."""
    try:
        moment = submitted_at(submitted)
    except UsageError:
        return None  # the error is raised again when the submission is graded
    return None if moment is None else problem.delay(moment)


def _by_table(file: Path, problem: Problem, now: datetime) -> SubmissionTimes:
    by_id, by_name = _table(file, problem, now)

    def of_one(submitted: CourseSubmission) -> datetime:
        named = by_id.get(submitted.owner.id, [])
        named = named[:] if len(named) == 1 else []
        for name in () if named else dict.fromkeys(submitted.names):
            named += by_name.get(name, [])
        if not named:
            what = f"has no moment for {submitted.author}"
            raise UsageError(str(file), what, f"add a row, or grade without {_OPTION}")
        if len(named) > 1:
            raise UsageError(str(file), f"has {len(named)} rows for {submitted.author}", "leave one")
        return named[0]

    return of_one


def _table(file: Path, problem: Problem, now: datetime) -> tuple[_ByKey, _ByKey]:
    """The times in a CSV file: by the platform's ids, from a column or from the author's name, and by names without
    ids. Other columns are ignored.
    """
    by_id, by_name, seen = _ByKey(), _ByKey(), set[tuple[str, str]]()
    rows = spreadsheet.read(file)
    column = next((name for name in _COLUMNS if rows and name in rows[0].cells), "")
    if not column or (column == _COLUMNS[0] and "author" not in rows[0].cells):
        missing = "author" if column else _COLUMNS[0]
        remedy = "it needs author and handed_in, or to be a sheet of Moodle, Gradescope or Canvas with moments"
        raise UsageError(str(file), f"has no column {missing!r}", remedy)
    texts = []
    for where, cells in rows:
        text = cells[column]
        if text in _NOTHING and (column != _COLUMNS[0] or cells.get("file") == ""):
            continue  # this person submitted nothing
        author, known = whose(cells)
        owner = Owner.of(author or known.name or known.id)
        ids = {owner.id, known.id, cells.get("email", "")} - {""}
        name = Owner(owner.name).author
        if (owner.id or known.id, name) in seen:
            remedy = "leave one row for each author, of two with this name as marks.csv names them"
            raise UsageError(where, f"names {owner.name or owner.author} again", remedy)
        seen.add((owner.id or known.id, name))
        moment = _moment(text, where, problem, now)
        texts.append(text)
        by_name.setdefault(name, []).append(moment)
        for own_id in ids:
            by_id.setdefault(own_id, []).append(moment)
    _say_zone(str(file), texts, problem)
    return by_id, by_name


def _say_zone(where: str, texts: Sequence[str], problem: Problem) -> None:
    """Say on stderr how times without an offset were read."""
    if problem.deadline is not None and any(_parsed(text).tzinfo is None for text in texts):
        offset = shown(problem.deadline).rpartition(" ")[2]
        say(f"kernelmark: note: {where} has moments without an offset; they count as {offset}, as the deadline's")


def _moment(text: str, where: str, problem: Problem, now: datetime) -> datetime:
    try:
        moment = _parsed(text)
    except ValueError:
        moment = datetime.min
    if moment.tzinfo is None and problem.deadline is not None:
        moment = moment.replace(tzinfo=problem.deadline.tzinfo)
    if moment.tzinfo is None or moment.year < 1970:
        what = "is not a date and time with its offset" if text.strip() else "has no moment"
        named = f"{text.strip()!r:.80} {what}" if text.strip() else what
        raise UsageError(where, named, "write it like 2027-01-31T23:59:00+01:00, or name a CSV file")
    if moment > now:
        raise UsageError(where, f"{text.strip()} is in the future", "say when it was handed in")
    return moment


def _parsed(text: str) -> datetime:
    """Parse a time in ISO 8601 or in a platform's format; raises a ValueError if it is in neither."""
    text = text.strip().removesuffix(" UTC") + ("+00:00" if text.strip().endswith(" UTC") else "")
    with suppress(ValueError):
        return datetime.fromisoformat(text)
    for form in _FORMS:
        with suppress(ValueError):
            return datetime.strptime(text, form)
    raise ValueError
