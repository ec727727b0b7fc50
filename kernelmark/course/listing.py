"""What was handed in, before it is graded: `kernelmark grade PROBLEM HANDINS --list`. Trusted; grades nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from typing_extensions import TypedDict

from harness.errors import UsageError
from kernelmark.course.submissions import CourseSubmission
from kernelmark.project.documents import print_as
from kernelmark.text.terminal import columns, counted, visible

if TYPE_CHECKING:
    from harness.problem.schedule import Delay
    from kernelmark.course.marked import Marked

_HEAD = ("author", "id", "name", "kernel", "handed in", "note")


class HandInDocument(TypedDict):
    """What one author handed in; of who handed in nothing, the file is empty."""

    author: str
    id: str
    name: str
    team: str
    file: str
    beside: list[str]
    handed_in: str
    late_days: int | None
    gradable: bool
    note: str


def listing(submitted: Sequence[tuple[CourseSubmission, Delay | None]], absent: Sequence[Marked], form: str) -> None:
    """Print who was found, as whom, with which file and when, why a submission cannot be graded, and who is absent."""
    found = [_document(hand_in, delay) for hand_in, delay in submitted]
    left = sum(not document["gradable"] for document in found)
    for one in absent:
        found.append(
            {
                "author": one.author,
                "id": one.id,
                "name": one.name,
                "team": one.team,
                "file": "",
                "beside": [],
                "handed_in": "",
                "late_days": None,
                "gradable": False,
                "note": one.graded.message,
            }
        )
    total = f"{counted(len(submitted), 'submission')}, {left} of which cannot be graded"
    print_as(form, "handins", found, [*columns([_row(one) for one in found], head=_HEAD, prose=True), "", total])


def _document(submitted: CourseSubmission, delay: Delay | None) -> HandInDocument:
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


def _row(one: HandInDocument) -> tuple[str, ...]:
    team = f"{one['team']} ({one['author']})" if one["team"] else one["author"]
    file = " with ".join(filter(None, (one["file"].partition("/")[2] or one["file"], ", ".join(one["beside"]))))
    late = f", {counted(one['late_days'], 'day')} late" if one["late_days"] else ""
    return tuple(map(visible, (team, one["id"], one["name"], file, one["handed_in"] + late, one["note"])))
