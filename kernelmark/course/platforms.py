"""Marks in the file formats of learning platforms: Moodle's worksheet, Canvas's gradebook, Gradescope's results.

`marks` writes the files. Trusted code over untrusted names and messages. Moodle and Canvas import only sheets with the
columns and the ids that they exported, so such a sheet is read, and a copy of it is filled in.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from harness.errors import UsageError
from kernelmark.course.owner import whose
from kernelmark.course.points import total
from kernelmark.text import spreadsheet
from kernelmark.text.terminal import counted, say, visible

if TYPE_CHECKING:
    from harness.problem import Problem
    from kernelmark.course.mark import Mark
    from kernelmark.course.points import Marking

_ASSIGNMENT = re.compile(r"(?P<name>.*) \(\d+\)")  # Canvas names a column of points by the assignment and its id
_SHOWN = 3  # how many names a note has
RESULTS = "results.json"


@dataclass(frozen=True)
class Gradebook:
    """A sheet that a platform exported, with the indices of its columns for points and comments."""

    path: Path
    sheet: spreadsheet.CsvFile
    points: int
    comment: int | None = None

    @classmethod
    def read(cls, path: Path, problem: Problem, column: str | None = None) -> Gradebook:
        """Read a sheet. `column` is the name of the assignment in Canvas, by default the problem's title or slug, or
        else the only assignment in the sheet.

        Raises:
            UsageError: it is no sheet of Moodle or Canvas, or more than one assignment could be meant.
        """
        sheet = spreadsheet.raw(path)
        names = [name.strip().casefold() for name in sheet.rows[0]] if sheet.rows else []
        if {"identifier", "grade"} <= set(names):
            comment = names.index("feedback comments") if "feedback comments" in names else None
            return cls(path, sheet, names.index("grade"), comment)
        found = {name: place for place, name in enumerate(names) if _ASSIGNMENT.fullmatch(name)}
        if not {"student", "id"} <= set(names) or not found:
            remedy = "name the worksheet that Moodle exports, or the gradebook of Canvas with the assignment"
            raise UsageError(str(path), "is no sheet of Moodle or Canvas with a column for points", remedy)
        wanted = [column] if column else [problem.title, problem.slug]
        known = {text.strip().casefold() for text in wanted}
        meant = [place for name, place in found.items() if {name, name.rpartition(" (")[0]} & known]
        meant = meant or ([] if column else [*found.values()])
        if len(meant) != 1:
            some = visible(", ".join(sheet.rows[0][place].strip() for place in found.values()))
            raise UsageError(str(path), f"has the assignments {some}", "say which with --column NAME")
        return cls(path, sheet, meant[0])

    @property
    def filled_path(self) -> Path:
        """Where the filled copy is written: next to the sheet, as `NAME.filled.csv`."""
        return self.path.with_suffix(f".filled{self.path.suffix}")

    def filled(self, marks: Sequence[Mark]) -> bytes:
        """The sheet with everyone's points, and with marks in words if it has a column for comments. All other cells
        stay as they are. A note on stderr names authors with points who have no row.
        """
        head, *rows = self.sheet.rows
        by_key: dict[str, list[Mark]] = {}
        for mark in marks:
            for key in {mark.id, mark.author} - {""}:
                by_key.setdefault(key, []).append(mark)
        taken, written = set[str](), [head]
        for row in rows:
            _, owner = whose(spreadsheet.cells(head, row))
            same_key = by_key.get(owner.id) or by_key.get(owner.author_with_id) or by_key.get(owner.author) or []
            same_person = [mark for mark in same_key if not (owner.id and mark.id and owner.id != mark.id)]
            matching = [mark for mark in same_person if mark.points]
            if len(matching) == 1 and (owner.id or owner.name) and len(row) > self.points:
                row = [*row]
                row[self.points] = matching[0].points
                if self.comment is not None and self.comment < len(row):
                    row[self.comment] = matching[0].words
                taken.add(matching[0].author)
            written.append(row)
        missing = [mark.author for mark in marks if mark.points and mark.author not in taken]
        if missing:
            some = ", ".join(missing[:_SHOWN]) + (" …" if len(missing) > _SHOWN else "")
            say(f"kernelmark: note: {self.path} has no row for {counted(len(missing), 'author')} with points: {some}")
        return spreadsheet.encoded(spreadsheet.joined(written, separator=self.sheet.separator))


class PlatformForms(NamedTuple):
    """The files to write for platforms: a sheet to fill, and the folder for Gradescope's results; None: not written."""

    gradebook: Gradebook | None = None
    gradescope: Path | None = None

    @classmethod
    def read(
        cls, marking: Marking | None, gradebook: Path | None, gradescope: Path | None, column: str | None
    ) -> PlatformForms:
        """Read the sheet that the options of a command name.

        Raises:
            UsageError: the options contradict each other, no rule gives points, or as for `Gradebook.read`.
        """
        if column is not None and gradebook is None:
            raise UsageError("--column", "goes with --gradebook", "name the sheet")
        if marking is None:
            if gradebook or gradescope:
                what, remedy = "holds points, and no rule says how many", "set [marks] in kernelmark.toml"
                raise UsageError("--gradebook" if gradebook else "--gradescope", what, remedy)
            return cls()
        return cls(Gradebook.read(gradebook, marking.problem, column) if gradebook else None, gradescope)

    def files(self, marks: Sequence[Mark]) -> Iterator[tuple[Path, bytes]]:
        """The paths and contents of the files to write."""
        if self.gradebook is not None:
            yield self.gradebook.filled_path, self.gradebook.filled(marks)
        if self.gradescope is not None:
            for mark in marks:
                if mark.parts:
                    yield self.gradescope / mark.author / RESULTS, results(mark)


def results(mark: Mark) -> bytes:
    """Gradescope's `results.json` for an author with points; each part of the mark is shown as a test."""
    tests = [{"name": part.what, "score": round(part.points, 4), "max_score": part.most} for part in mark.parts]
    score = round(total(mark.parts).points, 4)
    document = {"score": score, "output": mark.words, "output_format": "text", "tests": tests}
    return (json.dumps(document, indent=2, ensure_ascii=False) + "\n").encode()
