"""Lists submissions without grading them: `kernelmark grade PROBLEM HANDINS --list`. Trusted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from typing_extensions import TypedDict

from harness.errors import UsageError
from kernelmark.course.submissions import CourseSubmission
from kernelmark.project.documents import print_as
from kernelmark.text.terminal import columns, counted, visible
from leaderboard.text.visible import shortened

if TYPE_CHECKING:
    from harness.problem.schedule import Delay
    from kernelmark.course.mark import Mark

_NAME, _TAIL = 40, 8  # characters that the table shows of a platform's name, and of its end; the JSON has all
_HEAD = ("author", "id", "name", "kernel", "handed in", "note")


class SubmittedDocument(TypedDict):
    """What one author submitted; the file is empty if that is nothing."""

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


def listing(submitted: Sequence[tuple[CourseSubmission, Delay | None]], absent: Sequence[Mark], form: str) -> None:
    """Print each author with files, times and the reason if they cannot be graded; then those who submitted nothing."""
    found = [_document(submission, delay) for submission, delay in submitted]
    total = f"{counted(len(submitted), 'submission')}, {sum(not document['gradable'] for document in found)}"
    for mark in absent:
        empty = SubmittedDocument(
            author=mark.author, id=mark.id, name=mark.name, team=mark.team, file="", beside=[], handed_in="",
            late_days=None, gradable=False, note=mark.graded.message,
        )  # fmt: skip
        found.append(empty)
    rows = [_row(document) for document in found]
    print_as(form, "handins", found, [*columns(rows, head=_HEAD, prose=True), "", f"{total} of which cannot be graded"])


def _document(submitted: CourseSubmission, delay: Delay | None) -> SubmittedDocument:
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


def _row(document: SubmittedDocument) -> tuple[str, ...]:
    author = f"{document['team']} ({document['author']})" if document["team"] else document["author"]
    kernel = document["file"].partition("/")[2] or document["file"]
    files = " with ".join(filter(None, (kernel, ", ".join(document["beside"]))))
    late = f", {counted(document['late_days'], 'day')} late" if document["late_days"] else ""
    name = shortened(document["name"], _NAME, _TAIL)
    cells = (author, document["id"], name, files, document["handed_in"] + late, document["note"])
    return tuple(map(visible, cells))
