"""Reports the results of several submissions: a summary in Markdown for people, and JUnit XML for a CI server.

`marks` writes the files. Trusted over hostile text: file names, messages and logs are escaped for either format.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from typing_extensions import TypedDict

from harness.errors import HarnessError, UsageError
from harness.verdict import Outcome, Verdict
from kernelmark.text import show, standings
from kernelmark.text.terminal import Line, visible
from leaderboard.publishing.markdown import escape, grid
from leaderboard.text.units import interval

if TYPE_CHECKING:
    from harness.problem.schedule import Delay
    from leaderboard.standings.ranking import Table


INTERRUPTED = 130
"""The exit status of a submission that was not graded because the command was interrupted, as in shells."""
_UNSUPPORTED = Outcome.UNSUPPORTED.exit_code
_NOT_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class GradedDocument(TypedDict):
    """One submission as `kernelmark grade` prints it for programs; in a team, the author is the member who submitted.

    `moment` and `factor` are null if the time of the submission is unknown; `factor` also if it was too late. `points`
    are those of marks.csv, and null if that has none: without `[marks]`, or if they cannot be decided.
    """

    path: str
    author: str
    id: str
    team: str
    moment: str | None
    factor: float | None
    points: float | None
    exit_code: int
    message: str
    verdict: Verdict | None


@dataclass(frozen=True)
class GradingResult:
    """The result of one submission and its exit status; without a verdict, `message` says why."""

    path: str
    code: int
    message: str
    verdict: Verdict | None = None
    table: Table | None = None
    left: str = ""
    """What the daily limits leave to its author."""
    by_author: bool = False
    """Whether there is no verdict because of a mistake that the author can fix; `message` describes it."""
    recorded: bool = False
    """Whether the verdict is in the ledger."""

    @property
    def outcome(self) -> str:
        """The outcome's name; without a verdict, "not graded" or "our fault"."""
        if self.verdict is not None:
            return self.verdict.outcome.value.replace("_", " ")
        return "not graded" if self.code in (UsageError.exit_code, INTERRUPTED) else "our fault"

    @property
    def errored(self) -> bool:
        """Whether grading or recording failed: no outcome has these exit statuses."""
        return self.code in (UsageError.exit_code, HarnessError.exit_code, INTERRUPTED)

    @property
    def lost(self) -> bool:
        """Whether its verdict should be in the ledger and is not."""
        return self.verdict is not None and self.errored and not self.recorded

    def document(
        self, author: str, own_id: str = "", team: str = "", delay: Delay | None = None, points: float | None = None
    ) -> GradedDocument:
        """The result for programs, with its author; the verdict is the document in the ledger."""
        verdict: Any = self.verdict.model_dump(mode="json", exclude_none=True) if self.verdict else None
        return {
            "path": self.path,
            "author": author,
            "id": own_id,
            "team": team,
            "moment": delay.handed_in.isoformat(timespec="seconds") if delay else None,
            "factor": delay.factor if delay else None,
            "points": points,
            "exit_code": self.code,
            "message": self.message,
            "verdict": verdict,
        }

    def lines(self) -> Iterator[str]:
        """The result for a terminal."""
        yield Line(visible(self.path), "bold")
        if self.verdict is not None:
            yield from show.verdict(self.verdict, self.table, self.left, record=self.recorded)
        if self.errored:
            what = "not recorded" if self.lost else "recorded" if self.recorded else self.outcome
            yield Line(f"{what}: {visible(self.message)}", "bold red", hang=2)


def worst(results: Sequence[GradingResult]) -> int:
    """The largest exit status, or 0 if there are no results; `unsupported` counts less than any other failure."""
    return max((result.code for result in results), key=lambda code: 0.5 if code == _UNSUPPORTED else code, default=0)


def summary(results: Sequence[GradingResult]) -> str:
    """A table of all results in Markdown, and the details of those that were not accepted."""
    parts = ["# Gradings\n"]
    if not results:
        return "\n".join([*parts, "No submission was added or changed.\n"])
    limited = any(result.left for result in results)
    columns = ["file", "outcome", "time per call", "standing", "run", *(["left today"] if limited else [])]
    parts.append(grid(columns, ([*_cells(result), *([escape(result.left)] if limited else [])] for result in results)))
    for result in results:
        if result.code:
            parts.append(f"## {escape(result.path)}\n")
            parts.append("".join(f"    {line}\n" for line in result.lines()))
    return "\n".join(parts)


def junit(results: Sequence[GradingResult]) -> bytes:
    """A test suite in JUnit XML with one case per submission. A kernel that fails is a failure, a submission that could
    not be graded is an error, and one that needs a GPU is skipped.
    """
    kinds = [_kind(result) for result in results]
    counts = {"tests": str(len(results)), "failures": str(kinds.count("failure")), "errors": str(kinds.count("error"))}
    counts["skipped"] = str(kinds.count("skipped"))
    suites = ElementTree.Element("testsuites", counts)
    suite = ElementTree.SubElement(suites, "testsuite", {"name": "kernelmark", **counts})
    for result in results:
        path = PurePosixPath(result.path)
        seconds = result.verdict.duration_ns / 1e9 if result.verdict else 0.0
        attributes = {"classname": _xml(str(path.parent)), "name": _xml(path.name), "time": f"{seconds:.3f}"}
        case = ElementTree.SubElement(suite, "testcase", attributes)
        if result.code:
            wrong = ElementTree.SubElement(
                case, _kind(result), {"message": _xml(result.message), "type": result.outcome}
            )
            wrong.text = _xml("\n".join(result.lines()))
        elif result.verdict and result.verdict.score:
            ElementTree.SubElement(case, "system-out").text = f"{interval(result.verdict.score)} a call"
    document: bytes = ElementTree.tostring(suites, encoding="utf-8", xml_declaration=True)
    return document + b"\n"


def _kind(result: GradingResult) -> str:
    if result.code == _UNSUPPORTED:
        return "skipped"
    return "error" if result.errored else "failure" if result.code else ""


def _cells(result: GradingResult) -> tuple[str, ...]:
    score = result.verdict.score if result.verdict else None
    standing = standings.standing(result.verdict, result.table) if result.verdict and result.table else ""
    run = result.verdict.run if result.verdict and result.recorded else ""
    return escape(result.path), result.outcome, interval(score) if score else "", escape(standing), run


def _xml(text: str) -> str:
    """Replace the characters that XML does not allow even if they are escaped."""
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text)
