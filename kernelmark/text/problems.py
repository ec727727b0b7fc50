"""The list of a project's problems: its document, and its lines for a terminal. Pure.

`kernelmark problems list` prints it, of the project here or of a server, whose texts are untrusted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pydantic import AwareDatetime, BaseModel, ConfigDict

from harness.problem.schedule import shown
from kernelmark.text.standings import frozen
from kernelmark.text.terminal import labelled, titled, visible
from leaderboard.standings.notice import Notice


@dataclass(frozen=True)
class BoardPlace:
    """A rank among all ranked rows of a table, with the title of the table."""

    rank: int
    of: int
    table: str
    run: str

    @property
    def text(self) -> str:
        return f"{self.rank} of {self.of} on {self.table}"


class ListedProblem(BaseModel):
    """A problem with its schedule, or that of the phase, and an author's places on its boards."""

    model_config = ConfigDict(frozen=True)

    slug: str
    title: str
    tags: tuple[str, ...]
    directory: str
    deadline: AwareDatetime | None = None
    closes: AwareDatetime | None = None
    frozen: AwareDatetime | None = None
    """From when on its board shows no results at present."""
    open: str = ""
    """The state of its own deadline, in words."""
    places: tuple[BoardPlace, ...]


class ProblemList(BaseModel):
    """What `kernelmark problems list` prints for programs. An earlier server answers with the problems only."""

    model_config = ConfigDict(frozen=True)

    items: tuple[ListedProblem, ...]
    phase: str = ""
    phase_open: str = ""
    """Until when the phase is open, in words; empty once the last one is closed."""
    announcements: tuple[Notice, ...] = ()
    author: str = ""
    """Whose places these are."""
    left: str = ""
    """What the daily limits leave to the author, in words; empty if there are none."""


def lines(found: ProblemList) -> Iterator[str]:
    """One line per problem; below it tags, deadline and the author's places (`2 of 7 on NVIDIA H200`), if any. Then
    the phase, the announcements, and what is left to the author.
    """
    if not found.items:
        yield "no problems here"
    entries = []
    for problem in found.items:
        stands = (f"you are {place.text}" for place in problem.places)
        hides = frozen(problem.frozen) if problem.frozen else ""
        below = map(visible, (", ".join(problem.tags), problem.open, hides, *stands))
        entries.append((visible(problem.slug), visible(problem.title), below))
    yield from titled(entries)
    if found.phase:
        ends = f"open {found.phase_open}" if found.phase_open else "closed"
        yield labelled("phase", visible(f"{found.phase}, {ends}"))
    yield from announced(found.announcements)
    if found.left:
        yield visible(f"you ({found.author}) have left today: {found.left}")


def announced(notices: Iterable[Notice], *, about: bool = True) -> Iterator[str]:
    """A line for each announcement, with the problem that it is `about`, if any."""
    for notice in notices:
        problem = f"{notice.problem}: " if notice.problem and about else ""
        yield labelled("announced", visible(f"{shown(notice.at)}: {problem}{notice.text}"))
