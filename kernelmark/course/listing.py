"""What was handed in, before it is graded: `kernelmark grade PROBLEM HANDINS --list`. Trusted; grades nothing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from harness.errors import UsageError
from harness.problem.schedule import shown
from kernelmark.course.submissions import CourseSubmission
from kernelmark.text.terminal import columns, counted, print_as, visible
from leaderboard.record.teams import shown as named

if TYPE_CHECKING:
    from harness.problem.schedule import Delay
    from kernelmark.course.marks import Marked

_NOTHING: dict[str, Any] = {"file": "", "beside": [], "handed_in": "", "late_days": None, "gradable": False}
_HEAD = ("author", "id", "name", "kernel", "handed in", "note")


def listing(submitted: Sequence[tuple[CourseSubmission, Delay | None]], absent: Sequence[Marked], form: str) -> None:
    """Print who was found, as whom, with which file and when, why a submission cannot be graded, and who is absent."""
    found = [_document(each, delay) for each, delay in submitted]
    rows = [_row(each, delay, document) for (each, delay), document in zip(submitted, found, strict=True)]
    left = sum(not document["gradable"] for document in found)
    total = f"{counted(len(rows), 'submission')}, {left} without a kernel"
    for one in absent:
        rows.append((visible(one.author), visible(one.id), visible(one.name), "", "", one.graded.message))
        known = {"author": one.author, "id": one.id, "name": one.name, "team": one.team}
        found.append({**_NOTHING, **known, "note": one.graded.message})
    lines = [*columns(rows, head=_HEAD, prose=True), "", total]
    print_as(form, found, lines)


def _document(submitted: CourseSubmission, delay: Delay | None) -> dict[str, Any]:
    beside, note, gradable = list[str](), "; ".join(submitted.remarks), True
    try:
        beside = [name for name, _ in submitted.submission().beside]
    except UsageError as error:
        gradable, note = False, str(error)
    return {
        "author": submitted.author,
        "id": submitted.owner.id,
        "name": submitted.owner.name,
        "team": submitted.team.name if submitted.team else "",
        "file": submitted.path,
        "beside": beside,
        "handed_in": delay.handed_in.isoformat(timespec="seconds") if delay else "",
        "late_days": delay.days if delay else None,
        "gradable": gradable,
        "note": note,
    }


def _row(submitted: CourseSubmission, delay: Delay | None, document: dict[str, Any]) -> tuple[str, ...]:
    path = PurePosixPath(submitted.path)
    within = str(path.relative_to(path.parts[0])) if len(path.parts) > 1 else path.name
    file = " with ".join(filter(None, (within, ", ".join(document["beside"]))))
    when = "" if delay is None else shown(delay.handed_in) + (f", {delay}" if delay.days else "")
    cells = (named(submitted.author, submitted.team), document["id"], document["name"], file, when, document["note"])
    return tuple(map(visible, cells))
